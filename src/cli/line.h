/* The line editor of the shell: history that outlives it, completion of words. One thread. */
#ifndef CK_CLI_LINE_H
#define CK_CLI_LINE_H

#include <stdbool.h>

typedef struct line_editor line_editor;

/* Words that may stand behind `before`, the one in front of it on the line ("": none); offers each to add. */
typedef void (*line_words)(void *arg, const char *before, void (*add)(void *to, const char *word), void *to);

/* Characters are UTF-8 whatever the environment says, as in SQL text. Before the first thread is started. */
void line_use_utf8(void);
/* history: a file, NULL for none. NULL without memory or terminal. */
line_editor *line_editor_new(const char *history, line_words words, void *arg);
void line_editor_free(line_editor *l); /* NULL is fine; saves the history */

typedef enum line_result { LINE_READ, LINE_CANCELLED, LINE_END } line_result;
/* The line without its end, the caller's to change, valid until the next call. CANCELLED: Ctrl-C. END: Ctrl-D, or
 * SIGTERM, which stays pending. */
line_result line_read(line_editor *l, const char *prompt, char **text);

#endif
