/* The command: `clink VERB`. Verbs are added by their files. */
#include <stdio.h>

int main(void) {
    puts("clink " CK_VERSION);
    return 0;
}
