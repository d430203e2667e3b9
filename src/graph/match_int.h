/* Inside graph/: what is known while two graphs are matched, and what tells two operators that do the same apart. */
#ifndef CK_GRAPH_MATCH_INT_H
#define CK_GRAPH_MATCH_INT_H

#include "graph/match.h"
#include "graph/places.h"

/* What operators must have in common; a number each, by operator. */
typedef enum ck_match_class {
    CK_MATCH_EXACT,   /* type, uid without the ordinal of equal ones, meaning */
    CK_MATCH_MEANT,   /* type, name, meaning */
    CK_MATCH_MEANING, /* type and meaning, of what has state: a column of its key has another name now */
    CK_MATCH_SOURCE,  /* type and name of what reads */
    CK_MATCH_UID,     /* type and uid without the ordinal */
    CK_MATCH_NAME,    /* type and name */
    CK_MATCH_CLASSES
} ck_match_class;

enum {
    CK_TELLS_USERS = 1,  /* whom it feeds, all of them known */
    CK_TELLS_PATH = 2,   /* and over which way */
    CK_TELLS_INPUTS = 4, /* by whom it is fed, all of them known */
    CK_TELLS_SINKS = 8,  /* the known tables that its rows come to */
    CK_TELLS_FIELDS = 16 /* what its state looks like */
};

typedef struct ck_match_side {
    const ck_graph *graph;
    ck_graph_places places;
    uint32_t *mate; /* by operator: 1 + the number of the wanted operator of its pair; 0: it is free */
    bool *frozen;   /* by operator: it is left out from here on */
    uint64_t *classes[CK_MATCH_CLASSES]; /* by operator; 0: it is in none */
    uint64_t *sinks;                     /* by operator: of the known tables; 0: none is known */
    uint64_t *told;                      /* by operator: what an evidence says; 0: nothing */
    uint64_t *like;                      /* by operator: equal where they stand for each other */
    uint64_t *users, *inputs;            /* scratch, by operator */
    uint8_t *users_known, *inputs_known;
} ck_match_side;

CK_NODISCARD ck_status ck_match_side_init(ck_arena *a, const ck_graph *g, ck_match_side *out);
/* Fills `told`. evidence 0: all of a class are told the same. */
void ck_match_tell(ck_match_side *s, uint32_t evidence);
/* Fills `sinks` from the pairs there are. */
void ck_match_find_sinks(ck_match_side *s);
/* Fills `like`. */
void ck_match_find_alike(ck_match_side *s);
/* Of a pair by its numbers: the stored operator that fed it, and goes on elsewhere; UINT32_MAX: none. */
uint32_t ck_match_lost(const ck_match_side *stored, ck_match_side *wanted, uint32_t s, uint32_t w);
static inline bool ck_match_is_free(const ck_match_side *s, uint32_t op) {
    return !s->mate[op] && !s->frozen[op] && s->places.keeps[op];
}

#endif
