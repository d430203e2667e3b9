/* The `nexmark` source: the persons, auctions and bids of the NEXMark benchmark. Of every 50 events one is a person,
 * three are auctions and 46 are bids, in order of event time. A value is a function of (seed, event, column), so that
 * the same rows come at any parallelism, after any restart and whatever columns a query asks for. */
#include "connector/connectors.h"

#include <math.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/suggest.h"
#include "connector/pacer.h"
#include "connector/row_splits.h"
#include "connector/table.h"
#include "data/builder.h"
#include "data/text.h"
#include "os/clock.h"

enum {
    FIRST_ID = 1000,
    FIRST_CATEGORY = 10,
    CATEGORIES = 5,
    IN_FLIGHT = 100, /* auctions a bid may be for */
    ACTIVE = 1000,   /* persons who sell and bid */
    CHANNELS = 10000,
    EPOCH = 50, /* events */
    TEXT_MAX = 1024,
};
static const int64_t base_ms = 1436918400000LL; /* 2015-07-15T00:00:00Z */

typedef enum nexmark_kind { PERSON, AUCTION, BID } nexmark_kind;
static const char *const kind_names[] = {"person", "auction", "bid"};
static const struct { uint32_t first, count; } share_of[] = {{0, 1}, {1, 3}, {4, 46}}; /* of the events of an epoch */

typedef struct event {
    uint64_t number, epoch;
    int64_t persons, auctions; /* so far, with this one */
    int64_t time_ms, per_second;
    uint64_t seed;
} event;

/* ---- random values: a stream for each event and column ---- */

typedef struct stream {
    uint64_t state;
} stream;

static stream stream_of(const event *e, uint32_t salt) {
    return (stream){ck_hash_combine(ck_hash_u64(e->seed, e->number), salt)};
}

static uint64_t draw(stream *s) { return ck_mix64(s->state += 0x9E3779B97F4A7C15ULL); }

static int64_t below(stream *s, int64_t n) {
    __extension__ typedef unsigned __int128 u128;
    return n > 0 ? (int64_t)((u128)draw(s) * (uint64_t)n >> 64) : 0;
}

static int64_t price(stream *s) {
    double unit = (double)(draw(s) >> 11) * 0x1p-53;
    return (int64_t)llround(pow(10.0, unit * 6.0) * 100.0);
}

static size_t letters(stream *s, char *to, size_t n) {
    for (size_t i = 0; i < n; i += 8) {
        uint64_t r = draw(s);
        for (size_t k = i; k < n && k < i + 8; k++, r >>= 8) to[k] = (char)('a' + (r & 0xFF) % 26);
    }
    return n;
}

/* So many letters, a fifth more or less. */
static size_t filler(stream *s, char *to, int64_t about) {
    int64_t delta = about / 5;
    return letters(s, to, (size_t)(about - delta + below(s, 2 * delta + 1)));
}

/* ---- what the parts of an event are about ---- */

/* Three of four times somebody everybody sells to or buys from, else somebody who is active. */
static int64_t some_person(stream *s, const event *e, int64_t hot) {
    if (below(s, 4) > 0) return hot < e->persons ? hot : e->persons - 1;
    int64_t active = e->persons < ACTIVE ? e->persons : ACTIVE;
    return e->persons - active + below(s, active);
}

static int64_t some_auction(stream *s, const event *e) {
    if (below(s, 2) > 0) return (e->auctions - 1) / 100 * 100;
    int64_t oldest = e->auctions > IN_FLIGHT ? e->auctions - IN_FLIGHT : 0;
    return oldest + below(s, e->auctions - oldest);
}

static const char *const hot_channels[] = {"Google", "Facebook", "Baidu", "Apple"};
enum { CHANNEL_SALT = 64, PRICE_SALT = 65 };

/* Below CHANNELS: one of those; above: a hot one. */
static int64_t channel_of(const event *e) {
    stream s = stream_of(e, CHANNEL_SALT);
    return below(&s, 2) > 0 ? CHANNELS + below(&s, 4) : below(&s, CHANNELS);
}

static size_t url_of(int64_t channel, char *to) {
    uint64_t h = (uint64_t)(channel + 1) * 0x9E3779B97F4A7C15ULL;
    char part[3][5] = {{0}};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++, h /= 26) part[i][k] = (char)('a' + h % 26);
    int n = snprintf(to, TEXT_MAX, "https://www.nexmark.com/%s/%s/%s/item.htm?query=1", part[0], part[1], part[2]);
    if (channel < CHANNELS && channel % 10)
        n += snprintf(to + n, TEXT_MAX - (size_t)n, "&channel_id=%lld", (long long)channel * 214748);
    return (size_t)n;
}

/* ---- columns ---- */

typedef int64_t (*number_fn)(stream *s, const event *e);
typedef size_t (*text_fn)(stream *s, const event *e, char *to);

static int64_t person_id(stream *s, const event *e) { return (void)s, FIRST_ID + e->persons - 1; }
static int64_t auction_id(stream *s, const event *e) { return (void)s, FIRST_ID + e->auctions - 1; }
static int64_t time_of(stream *s, const event *e) { return (void)s, e->time_ms; }
static int64_t seller(stream *s, const event *e) { return FIRST_ID + some_person(s, e, (e->persons - 1) / 100 * 100); }
static int64_t bidder(stream *s, const event *e) {
    return FIRST_ID + some_person(s, e, (e->persons - 1) / 100 * 100 + 1);
}
static int64_t bid_auction(stream *s, const event *e) { return FIRST_ID + some_auction(s, e); }
static int64_t bid_price(stream *s, const event *e) { return (void)e, price(s); }
static int64_t category(stream *s, const event *e) { return (void)e, FIRST_CATEGORY + below(s, CATEGORIES); }
static int64_t initial_bid(stream *s, const event *e) {
    *s = stream_of(e, PRICE_SALT);
    return price(s);
}
static int64_t reserve(stream *s, const event *e) {
    *s = stream_of(e, PRICE_SALT);
    int64_t first = price(s);
    return first + price(s);
}
static int64_t expires(stream *s, const event *e) {
    int64_t horizon = (int64_t)IN_FLIGHT * EPOCH / 3 * 1000 / e->per_second;
    return e->time_ms + 1 + below(s, horizon > 0 ? horizon * 2 : 1);
}

static size_t copy(char *to, const char *text) {
    size_t n = strlen(text);
    memcpy(to, text, n);
    return n;
}
static size_t name(stream *s, const event *e, char *to) {
    static const char *const first[] = {"Peter", "Paul",  "Luke",  "John",   "Saul",  "Vicky",
                                        "Kate",  "Julie", "Sarah", "Deiter", "Walter"};
    static const char *const last[] = {"Shultz", "Abrams", "Spencer", "White", "Bartels",
                                       "Walton", "Smith",  "Jones",   "Noris"};
    (void)e;
    size_t n = copy(to, first[below(s, CK_ARRAY_COUNT(first))]);
    to[n++] = ' ';
    return n + copy(to + n, last[below(s, CK_ARRAY_COUNT(last))]);
}
static size_t email(stream *s, const event *e, char *to) {
    (void)e;
    size_t n = letters(s, to, 7);
    to[n++] = '@';
    n += letters(s, to + n, 5);
    return n + copy(to + n, ".com");
}
static size_t credit_card(stream *s, const event *e, char *to) {
    (void)e;
    size_t n = 0;
    for (int i = 0; i < 4; i++) n += (size_t)snprintf(to + n, 8, i ? " %04d" : "%04d", (int)below(s, 10000));
    return n;
}
static size_t city(stream *s, const event *e, char *to) {
    static const char *const names[] = {"Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland",
                                        "Bend",    "Redmond",     "Seattle",       "Kent",  "Cheyenne"};
    (void)e;
    return copy(to, names[below(s, CK_ARRAY_COUNT(names))]);
}
static size_t us_state(stream *s, const event *e, char *to) {
    static const char *const names[] = {"AZ", "CA", "ID", "OR", "WA", "WY"};
    (void)e;
    return copy(to, names[below(s, CK_ARRAY_COUNT(names))]);
}
static size_t item_name(stream *s, const event *e, char *to) {
    return (void)e, letters(s, to, 5 + (size_t)below(s, 15));
}
static size_t description(stream *s, const event *e, char *to) {
    return (void)e, letters(s, to, 20 + (size_t)below(s, 80));
}
static size_t channel(stream *s, const event *e, char *to) {
    int64_t c = channel_of(e);
    (void)s;
    if (c >= CHANNELS) return copy(to, hot_channels[c - CHANNELS]);
    return (size_t)snprintf(to, TEXT_MAX, "channel-%lld", (long long)c);
}
static size_t url(stream *s, const event *e, char *to) { return (void)s, url_of(channel_of(e), to); }
static size_t person_extra(stream *s, const event *e, char *to) { return (void)e, filler(s, to, 115); }
static size_t auction_extra(stream *s, const event *e, char *to) { return (void)e, filler(s, to, 350); }
static size_t bid_extra(stream *s, const event *e, char *to) { return (void)e, filler(s, to, 68); }

typedef struct column {
    const char *name;
    number_fn number; /* or */
    text_fn text;
    bool time; /* epoch milliseconds as BIGINT, or a TIMESTAMP */
} column;

static const column person_columns[] = {{"id", person_id, NULL, false},       {"name", NULL, name, false},
                                        {"emailaddress", NULL, email, false}, {"creditcard", NULL, credit_card, false},
                                        {"city", NULL, city, false},          {"state", NULL, us_state, false},
                                        {"datetime", time_of, NULL, true},    {"extra", NULL, person_extra, false}};
static const column auction_columns[] = {
    {"id", auction_id, NULL, false},           {"itemname", NULL, item_name, false},
    {"description", NULL, description, false}, {"initialbid", initial_bid, NULL, false},
    {"reserve", reserve, NULL, false},         {"datetime", time_of, NULL, true},
    {"expires", expires, NULL, true},          {"seller", seller, NULL, false},
    {"category", category, NULL, false},       {"extra", NULL, auction_extra, false}};
static const column bid_columns[] = {
    {"auction", bid_auction, NULL, false}, {"bidder", bidder, NULL, false}, {"price", bid_price, NULL, false},
    {"channel", NULL, channel, false},     {"url", NULL, url, false},       {"datetime", time_of, NULL, true},
    {"extra", NULL, bid_extra, false}};
static const struct {
    const column *columns;
    uint32_t count;
} columns_of[] = {{person_columns, CK_ARRAY_COUNT(person_columns)},
                  {auction_columns, CK_ARRAY_COUNT(auction_columns)},
                  {bid_columns, CK_ARRAY_COUNT(bid_columns)}};

/* ---- the table ---- */

typedef struct shape {
    nexmark_kind kind;
    uint64_t rows; /* UINT64_MAX: for ever */
    int64_t per_second, seed;
    double rate;
} shape;

static ck_status read_kind(const char *table, const ck_table_options *o, nexmark_kind *out, ck_error *err) {
    const char *said = ck_option_text(o, "table", NULL), *word = said ? said : table;
    for (uint32_t i = 0; i < CK_ARRAY_COUNT(kind_names); i++) {
        *out = (nexmark_kind)i;
        if (ck_view_eq_nocase(ck_view_of(word), ck_view_of(kind_names[i]))) return CK_OK;
    }
    return ck_fail(err, CK_INVALID,
                   said ? "option 'table' is '%s', which is none of person, auction, bid"
                        : "the table %s is none of person, auction, bid: say which with the option 'table'",
                   word);
}

static uint64_t rows_of(nexmark_kind kind, uint64_t events) {
    uint64_t rest = events % EPOCH, first = share_of[kind].first, count = share_of[kind].count;
    uint64_t begun = rest <= first ? 0 : rest - first < count ? rest - first : count;
    return events / EPOCH * count + begun;
}

static ck_status read_shape(const char *table, const ck_table_options *o, shape *out, ck_error *err) {
    int64_t events;
    CK_TRY(read_kind(table, o, &out->kind, err));
    CK_TRY(ck_option_i64(o, "events", -1, 0, INT64_MAX / 1000, &events, err));
    CK_TRY(ck_option_i64(o, "events_per_second", 10000, 1, 1000000000, &out->per_second, err));
    CK_TRY(ck_option_i64(o, "seed", 1, INT64_MIN, INT64_MAX, &out->seed, err));
    CK_TRY(ck_option_f64(o, "rate_limit", 0, &out->rate, err));
    if (out->rate < 0) return ck_fail(err, CK_INVALID, "option 'rate_limit' is negative");
    out->rows = events < 0 ? UINT64_MAX : rows_of(out->kind, (uint64_t)events);
    return CK_OK;
}

static bool fits(const column *c, const ck_type *t) {
    if (c->text) return t->kind == CK_TYPE_VARCHAR && t->precision == 0; /* of any length */
    return t->kind == CK_TYPE_BIGINT || (c->time && (t->kind == CK_TYPE_TIMESTAMP || t->kind == CK_TYPE_TIMESTAMP_LTZ));
}

static ck_status find_column(nexmark_kind kind, const ck_field *f, const column **out, ck_error *err) {
    ck_suggest near;
    ck_suggest_init(&near, ck_view_of(f->name));
    for (uint32_t i = 0; i < columns_of[kind].count; i++) {
        const column *c = &columns_of[kind].columns[i];
        ck_suggest_offer(&near, ck_view_of(c->name));
        if (!ck_view_eq_nocase(ck_view_of(c->name), ck_view_of(f->name))) continue;
        *out = c;
        if (fits(c, f->type)) return CK_OK;
        return ck_fail(err, CK_INVALID, "column %s of a nexmark %s is %s", f->name, kind_names[kind],
                       c->text   ? "VARCHAR without a length"
                       : c->time ? "BIGINT (epoch milliseconds) or TIMESTAMP"
                                 : "BIGINT");
    }
    if (near.best.n)
        return ck_fail(err, CK_INVALID, "a nexmark %s has no column %s; did you mean %.*s?", kind_names[kind], f->name,
                       (int)near.best.n, near.best.p);
    return ck_fail(err, CK_INVALID, "a nexmark %s has no column %s", kind_names[kind], f->name);
}

/* ---- the source ---- */

typedef struct nexmark {
    ck_mem mem;
    ck_arena arena;
    ck_source_table table;
    shape shape;
    uint64_t seed;
    const column **columns; /* of the table's */
    ck_event_time event_time;
    ck_row_splits splits;
    ck_pacer pacer;
} nexmark;

static void nexmark_free(nexmark *n) {
    ck_pacer_share(&n->pacer, false);
    ck_event_time_destroy(&n->event_time);
    ck_row_splits_destroy(&n->splits);
    ck_arena_destroy(&n->arena);
    ck_free(n->mem, n, sizeof *n);
}

static ck_status nexmark_init(nexmark *n, const ck_op_spec *spec, ck_error *err) {
    CK_TRY(ck_source_table_read(&n->arena, spec, &n->table, err));
    CK_TRY(read_shape(n->table.table, &n->table.options, &n->shape, err));
    n->seed = ck_mix64((uint64_t)n->shape.seed);
    n->columns = ck_arena_array(&n->arena, n->table.schema->field_count + 1u, sizeof(column *));
    if (!n->columns) return ck_nomem(err, n->arena.mem, n->table.schema->field_count * sizeof(column *));
    for (uint32_t i = 0; i < n->table.schema->field_count; i++)
        CK_TRY(find_column(n->shape.kind, &n->table.schema->fields[i], &n->columns[i], err));
    n->pacer = ck_pacer_of(n->shape.rate, spec);
    n->splits = (ck_row_splits){n->mem, &n->arena, &n->event_time, n->shape.rows, NULL, 0, 0, 0};
    return ck_event_time_init(&n->event_time, n->table.event_time, spec, &n->arena, n->mem, err);
}

static ck_status nexmark_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    nexmark *n = ck_alloc_zero(mem, sizeof *n);
    if (!n) return ck_nomem(err, mem, sizeof *n);
    n->mem = mem;
    ck_arena_init(&n->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status s = nexmark_init(n, spec, err);
    if (s == CK_OK)
        *self = n;
    else
        nexmark_free(n);
    return s;
}

static ck_status nexmark_enumerate(const ck_op_spec *spec, uint32_t parallelism, ck_split_list *out, ck_error *err) {
    return ck_row_splits_enumerate(spec, parallelism, out, err);
}

static ck_status nexmark_add_split(void *self, const ck_split *split, ck_op_ctx *ctx) {
    nexmark *n = self;
    CK_TRY(ck_row_splits_add(&n->splits, split, ctx));
    if (ck_row_splits_left(&n->splits)) ck_pacer_share(&n->pacer, true);
    return CK_OK;
}

static ck_status nexmark_snapshot(void *self, ck_split_list *out, ck_op_ctx *ctx) {
    return ck_row_splits_snapshot(&((nexmark *)self)->splits, out, ctx);
}

static event event_of(const nexmark *n, uint64_t row) {
    uint64_t count = share_of[n->shape.kind].count, epoch = row / count;
    uint64_t at = share_of[n->shape.kind].first + row % count;
    event e = {.number = epoch * EPOCH + at, .epoch = epoch, .per_second = n->shape.per_second, .seed = n->seed};
    e.persons = (int64_t)epoch + 1;
    e.auctions = (int64_t)epoch * 3 + (int64_t)(at < 4 ? at : 3);
    e.time_ms = base_ms + (int64_t)(e.number * 1000 / (uint64_t)e.per_second);
    return e;
}

static ck_status make_column(const nexmark *n, const ck_row_split *s, uint32_t c, uint32_t rows,
                             ck_column_builder *to) {
    const column *what = n->columns[c];
    char text[TEXT_MAX];
    bool number = to->type->kind == CK_TYPE_BIGINT;
    uint32_t salt = (uint32_t)(what - columns_of[n->shape.kind].columns);
    for (uint32_t i = 0; i < rows; i++) {
        event e = event_of(n, s->next + i * s->step);
        stream draws = stream_of(&e, salt);
        if (what->text)
            CK_TRY(ck_build_str(to, text, what->text(&draws, &e, text)));
        else
            CK_TRY(ck_build_i64(to, number
                                        ? what->number(&draws, &e)
                                        : ck_time_at_precision(to->type->precision, what->number(&draws, &e) * 1000)));
    }
    return CK_OK;
}

static ck_status make_batch(const nexmark *n, const ck_row_split *s, uint32_t rows, ck_batch **out, ck_op_ctx *ctx) {
    ck_batch_builder b;
    ck_status status = ck_batch_builder_init(&b, ctx->mem, n->table.schema, rows);
    for (uint32_t c = 0; status == CK_OK && c < n->table.schema->field_count; c++)
        if (n->table.wanted[c]) status = make_column(n, s, c, rows, &b.columns[c]);
    for (uint32_t i = 0; status == CK_OK && i < rows; i++) ck_batch_builder_row(&b, 1);
    *out = status == CK_OK ? ck_batch_builder_finish(&b) : NULL;
    ck_batch_builder_destroy(&b);
    return *out ? CK_OK : ck_nomem(ctx->error, ctx->mem, rows * sizeof(ck_strview));
}

static ck_status nexmark_poll(void *self, ck_op_ctx *ctx, ck_poll_result *result, int64_t *until_us) {
    nexmark *n = self;
    int64_t now = ck_mono_us(ctx->proc);
    *result = CK_POLL_IDLE;
    if (!ck_pacer_ready(&n->pacer, now, until_us)) return CK_OK;
    uint32_t rows = ck_pacer_rows(&n->pacer, ctx->settings->batch_rows);
    ck_row_split *s = ck_row_splits_next(&n->splits, &rows);
    *result = s ? CK_POLL_MORE : CK_POLL_END;
    ck_pacer_share(&n->pacer, s != NULL);
    if (!s) return CK_OK;
    ck_batch *b = NULL;
    CK_TRY(make_batch(n, s, rows, &b, ctx));
    ck_batch *out = ck_source_output(&n->table, b);
    ck_status status = out ? ck_event_time_see(&n->event_time, s->clock, b, ctx)
                           : ck_nomem(ctx->error, ctx->mem, n->table.column_count * sizeof(ck_column *));
    ck_batch_unref(&b);
    if (status != CK_OK) {
        ck_batch_unref(&out);
        return status;
    }
    ck_row_splits_took(&n->splits, s, rows);
    ck_pacer_took(&n->pacer, now, rows);
    ck_op_count(ctx, "rows_in", rows);
    CK_TRY(ck_op_emit(ctx, 0, &out));
    return ck_event_time_say(&n->event_time, ctx);
}

static void nexmark_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    nexmark_free(self);
}

static const ck_source_vtbl nexmark_vtbl = {
    .struct_bytes = sizeof(ck_source_vtbl),
    .add_split = nexmark_add_split,
    .poll = nexmark_poll,
    .snapshot = nexmark_snapshot,
    .close = nexmark_close,
};

const ck_op_desc ck_op_source_nexmark = {
    .type = "source.nexmark",
    .source = &nexmark_vtbl,
    .create = nexmark_create,
    .enumerate = nexmark_enumerate,
    .again = ck_source_again,
    .rewind = ck_row_splits_rewind,
};

/* ---- the connector ---- */

static const ck_option_desc nexmark_options[] = {
    {"table", "person|auction|bid", NULL, "which rows; by the table's name where not given"},
    {"events", "integer", NULL,
     "events of all three kinds, of which the table has its share; without it they never end"},
    {"events_per_second", "integer", "10000", "events in a second of event time"},
    {"rate_limit", "text", NULL, "rows a second for the whole table"},
    {"seed", "integer", "1", "another seed, other random values"},
};

static ck_status nexmark_check(const ck_table_decl *t, bool as_sink, ck_error *err) {
    shape s;
    if (as_sink) return ck_fail(err, CK_INVALID, "nexmark only makes rows, it does not take any");
    CK_TRY(read_shape(t->name, &t->options, &s, err));
    for (uint32_t i = 0; i < t->schema->field_count; i++) {
        const column *c;
        CK_TRY(find_column(s.kind, &t->schema->fields[i], &c, err));
    }
    return CK_OK;
}

static bool nexmark_bounded(const ck_table_decl *t) { return ck_option_text(&t->options, "events", NULL) != NULL; }

const ck_connector_desc ck_connector_nexmark = {
    .name = "nexmark",
    .options = nexmark_options,
    .option_count = CK_ARRAY_COUNT(nexmark_options),
    .source_type = "source.nexmark",
    .check = nexmark_check,
    .bounded = nexmark_bounded,
};
