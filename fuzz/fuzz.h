/* What a fuzz target defines. Return 0 always; a find is a crash, a sanitizer's report or a failed CK_ASSERT. Include
 * nothing that reads the environment or the clock: the same bytes must do the same. */
#ifndef CK_FUZZ_FUZZ_H
#define CK_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
