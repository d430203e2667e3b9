/* Someone who reads the output directories all the time. Nothing half-written may ever be seen: a part that has
 * appeared never changes and never vanishes, and holds whole rows that the model knows, none more often than the model
 * has it; an upsert file is whole at any time. A power cut, or a failed sync of the directory, may take back a name
 * that was just given; the next life gives it again, with the same content. */
#ifndef SIM_READER_H
#define SIM_READER_H

#include "os/simfs.h"
#include "sql_case.h"

typedef struct reader reader;

reader *reader_new(const sql_case *c, ck_simfs *disk);
void reader_free(reader *r);

/* A look after a change: false when something must not be seen; *why is static text. */
bool reader_look(reader *r);
/* The power went: names may be missing until the next life has begun. */
void reader_power_cut(reader *r);
/* Reads everything again. done: all rows must have come, and a job that ends by itself has left nothing hidden. */
bool reader_check(reader *r, bool done);
/* Whether all rows have come, without judging. */
bool reader_is_complete(reader *r);
/* The first thing that was wrong; "" when nothing was. */
const char *reader_why(const reader *r);

#endif
