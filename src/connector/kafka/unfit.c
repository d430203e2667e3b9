/* See unfit.h. */
#include "connector/kafka/unfit.h"

typedef struct ck_kafka_unfit_record {
    size_t line, at, n;
    const char *why;
} ck_kafka_unfit_record;

enum { TEXT_BYTES_MAX = 1 << 30 };

void ck_kafka_unfit_init(ck_kafka_unfit *u, ck_mem mem) {
    *u = (ck_kafka_unfit){.mem = mem};
    ck_bytes_init(&u->text, mem, TEXT_BYTES_MAX);
}

void ck_kafka_unfit_destroy(ck_kafka_unfit *u) {
    ck_bytes_destroy(&u->text);
    ck_free(u->mem, u->list, u->capacity * sizeof *u->list);
    u->list = NULL;
    u->count = u->capacity = 0;
}

void ck_kafka_unfit_clear(ck_kafka_unfit *u) {
    ck_bytes_clear(&u->text);
    u->count = 0;
}

ck_status ck_kafka_unfit_add(ck_kafka_unfit *u, size_t line, const char *why, ck_view record) {
    if (u->count == u->capacity) {
        size_t capacity = u->capacity ? u->capacity * 2 : 16;
        void *list = ck_realloc(u->mem, u->list, u->capacity * sizeof *u->list, capacity * sizeof *u->list);
        if (!list) return CK_NOMEM;
        u->list = list;
        u->capacity = capacity;
    }
    size_t at = u->text.n;
    CK_TRY(ck_bytes_view(&u->text, record));
    u->list[u->count++] = (ck_kafka_unfit_record){line, at, record.n, why};
    return CK_OK;
}

const char *ck_kafka_unfit_of(const ck_kafka_unfit *u, size_t line, ck_view *record) {
    size_t low = 0, high = u->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (u->list[middle].line < line)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == u->count || u->list[low].line != line) return NULL;
    *record = (ck_view){u->text.p + u->list[low].at, u->list[low].n};
    return u->list[low].why;
}

const char *ck_kafka_csv_unfit(ck_view text) {
    enum { FIELD, PLAIN, QUOTED, CLOSED } at = FIELD;
    if (!text.n || (!memchr(text.p, '"', text.n) && !memchr(text.p, '\n', text.n))) return NULL;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (at == QUOTED) {
            if (c == '"') at = CLOSED;
        } else if (at == CLOSED && c == '"') {
            at = QUOTED; /* doubled */
        } else if (c == ',') {
            at = FIELD;
        } else if (c == '\n') {
            return "a record of csv of more than one line";
        } else if (c == '"') {
            if (at == PLAIN) return "a quote inside an unquoted field";
            at = QUOTED;
        } else if (at == CLOSED && c != '\r') {
            return "text after a closing quote";
        } else {
            at = PLAIN;
        }
    }
    return at == QUOTED ? "a quote that is never closed" : NULL;
}
