/* What expressions cost on one core: nanoseconds of CPU a row over full batches shaped like bids of an auction, the
 * best of several runs. expr_bench [NAME]     only what begins with NAME: filter, arith, decimal, logic, case, text,
 * regex, time, cast */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "data/builder.h"
#include "expr/program.h"
#include "os/fs.h"

enum { ROWS = CK_BATCH_ROWS_MAX, BATCHES = 8, RUNS = 12 };
enum { AUCTION, BIDDER, PRICE, CHANNEL, URL, EXTRA, RT, X, Y, NULLABLE, COLUMNS };

static ck_budget budget;
static ck_mem mem;
static ck_proc proc;
static ck_arena arena;
static uint64_t seed = 42;
static const char *wanted = "";
static ck_batch *batches[BATCHES];
static ck_field fields[COLUMNS];

static uint64_t next(void) { return ck_mix64(seed += 0x9E3779B97F4A7C15ULL); }
static void must(ck_status s, const ck_error *err) {
    if (s == CK_OK) return;
    fprintf(stderr, "%s\n", err ? err->msg : ck_status_name(s));
    exit(3);
}

static double cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- data ---- */

static void put_text(ck_column_builder *b, int column) {
    static const char *const channels[] = {"Apple", "Google", "Facebook", "Baidu", "channel-7261", "channel-99"};
    char text[256];
    int n = 0;
    uint64_t r = next();
    if (column == CHANNEL) {
        n = snprintf(text, sizeof text, "%s", channels[r % 6]);
    } else if (column == URL) {
        n = snprintf(text, sizeof text, "https://www.nexmark.com/%c%c%c/%c%c%c/item.htm?query=1%s", (int)('a' + r % 26),
                     (int)('a' + r / 7 % 26), (int)('a' + r / 11 % 26), (int)('a' + r / 13 % 26),
                     (int)('a' + r / 17 % 26), (int)('a' + r / 19 % 26), r % 3 ? "" : "&channel_id=12345678");
    } else {
        n = 60 + (int)(r % 60);
        for (int i = 0; i < n; i++) text[i] = (char)('a' + (next() >> 20) % 26);
    }
    must(ck_build_str(b, text, (size_t)n), NULL);
}

static void put_value(ck_column_builder *b, int column, uint32_t row) {
    uint64_t r = next();
    switch (column) {
    case AUCTION: must(ck_build_i64(b, (int64_t)(1000 + r % 20000)), NULL); break;
    case BIDDER: must(ck_build_i64(b, (int64_t)(1000 + r % 10000)), NULL); break;
    case PRICE: must(ck_build_i64(b, (int64_t)(100 + (r % 100000000) * (r >> 40 & 1) + r % 10000)), NULL); break;
    case RT: must(ck_build_i64(b, 1700000000000000 + (int64_t)row * 137000), NULL); break;
    case X: must(ck_build_f64(b, (double)(r % 1000) / 7), NULL); break;
    case Y: must(ck_build_f64(b, (double)(r % 997) / 3 + 1), NULL); break;
    case NULLABLE: must(r % 10 ? ck_build_i64(b, (int64_t)(r % 1000)) : ck_build_null(b), NULL); break;
    default: put_text(b, column);
    }
}

static void make_data(void) {
    static const char *const names[] = {"auction", "bidder", "price", "channel", "url", "extra", "rt", "x", "y", "n"};
    for (int c = 0; c < COLUMNS; c++) {
        ck_kind k = c == RT                      ? CK_TYPE_TIMESTAMP_LTZ
                    : c == X || c == Y           ? CK_TYPE_DOUBLE
                    : c >= CHANNEL && c <= EXTRA ? CK_TYPE_VARCHAR
                                                 : CK_TYPE_BIGINT;
        fields[c] = (ck_field){names[c], ck_type_simple(k), c == NULLABLE};
    }
    for (int i = 0; i < BATCHES; i++) {
        batches[i] = ck_batch_new(mem, COLUMNS, ROWS, false, false);
        for (int c = 0; c < COLUMNS; c++) {
            ck_column_builder b;
            must(ck_column_builder_init(&b, mem, fields[c].type, ROWS), NULL);
            for (uint32_t r = 0; r < ROWS; r++) put_value(&b, c, (uint32_t)i * ROWS + r);
            ck_column *col = ck_column_builder_finish(&b);
            ck_batch_set_column(batches[i], (uint32_t)c, &col);
            ck_column_builder_destroy(&b);
        }
    }
}

/* ---- expressions ---- */

static ck_expr *col(uint32_t c) { return ck_expr_column(&arena, c, fields[c].type, fields[c].nullable); }
static ck_expr *num(int64_t v) {
    return ck_expr_literal(&arena, ck_type_simple(v == (int32_t)v ? CK_TYPE_INTEGER : CK_TYPE_BIGINT),
                           (ck_datum){.i64 = v});
}
static ck_expr *dbl(double v) { return ck_expr_literal(&arena, ck_type_simple(CK_TYPE_DOUBLE), (ck_datum){.f64 = v}); }
static ck_expr *str(const char *z) {
    return ck_expr_literal(&arena, ck_type_simple(CK_TYPE_VARCHAR), (ck_datum){.str = ck_view_of(z)});
}
static ck_expr *dec(int64_t unscaled, int precision, int scale) {
    return ck_expr_literal(&arena, ck_type_decimal(&arena, precision, scale), (ck_datum){.i128 = unscaled});
}
static ck_expr *call(const char *name, int count, ...) {
    ck_expr *args[16], *out;
    ck_error err = CK_ERROR_INIT;
    va_list ap;
    va_start(ap, count);
    for (int i = 0; i < count; i++) args[i] = va_arg(ap, ck_expr *);
    va_end(ap);
    must(ck_expr_call(&arena, name, args, (uint32_t)count, &out, &err), &err);
    return out;
}
static ck_expr *cast(ck_expr *e, ck_kind k) {
    ck_error err = CK_ERROR_INIT;
    ck_expr *out;
    must(ck_expr_cast(&arena, e, ck_type_simple(k), false, &out, &err), &err);
    return out;
}

/* ---- measuring ---- */

typedef struct subject {
    ck_eval *ev;
    bool filter;
    uint32_t count, kept;
} subject;

static void run_once(subject *s) {
    static uint16_t sel[ROWS];
    ck_error err = CK_ERROR_INIT;
    s->kept = 0;
    for (int i = 0; i < BATCHES; i++) {
        if (s->filter) {
            uint32_t n;
            must(ck_eval_filter(s->ev, batches[i], sel, &n, &err), &err);
            s->kept += n;
            continue;
        }
        ck_column *out[8];
        must(ck_eval_run(s->ev, batches[i], out, &err), &err);
        for (uint32_t k = 0; k < s->count; k++) ck_column_unref(&out[k]);
    }
}

static void measure(const char *name, bool filter, int count, ...) {
    if (strncmp(name, wanted, strlen(wanted)) != 0) return;
    ck_expr *e[8];
    va_list ap;
    va_start(ap, count);
    for (int i = 0; i < count; i++) e[i] = va_arg(ap, ck_expr *);
    va_end(ap);
    ck_error err = CK_ERROR_INIT;
    ck_program *p;
    subject s = {.filter = filter, .count = (uint32_t)count};
    const ck_eval_options o = {.proc = &proc, .mem = mem, .timezone = "UTC"};
    must(ck_program_compile(&arena, e, (uint32_t)count, &p, &err), &err);
    must(ck_eval_new(p, &o, &s.ev, &err), &err);
    double best = 1e300;
    for (int r = 0; r < RUNS; r++) {
        unsigned calls = 0;
        double start = cpu_ns(), ns;
        do run_once(&s), calls++;
        while ((ns = cpu_ns() - start) < 4e6);
        ns /= (double)calls * ROWS * BATCHES;
        if (ns < best) best = ns;
    }
    if (filter)
        printf("%-52s %8.2f ns %8.0f M rows/s   keeps %4.1f%%\n", name, best, 1e3 / best,
               100.0 * s.kept / (ROWS * BATCHES));
    else
        printf("%-52s %8.2f ns %8.0f M rows/s\n", name, best, 1e3 / best);
    ck_eval_free(s.ev);
}

static void numbers(void) {
    measure("filter price > 1000000", true, 1, call(">", 2, col(PRICE), num(1000000)));
    measure("filter x < 0.5e0", true, 1, call("<", 2, col(X), dbl(70)));
    measure("filter n = 7 (with NULLs)", true, 1, call("=", 2, col(NULLABLE), num(7)));
    measure("filter price > c AND auction < c AND bidder > c", true, 3, call(">", 2, col(PRICE), num(5000)),
            call("<", 2, col(AUCTION), num(15000)), call(">", 2, col(BIDDER), num(3000)));
    measure("filter MOD(auction, 123) = 0", true, 1, call("=", 2, call("%", 2, col(AUCTION), num(123)), num(0)));
    measure("filter auction IN (5 numbers)", true, 1,
            call("in", 6, col(AUCTION), num(1007), num(2020), num(3001), num(4087), num(5001)));
    measure("filter a < c OR b > c", true, 1,
            call("or", 2, call("<", 2, col(AUCTION), num(2000)), call(">", 2, col(BIDDER), num(10000))));
    measure("arith price + 1", false, 1, call("+", 2, col(PRICE), num(1)));
    measure("arith price * auction + bidder", false, 1,
            call("+", 2, call("*", 2, col(PRICE), col(AUCTION)), col(BIDDER)));
    measure("arith n + price (with NULLs)", false, 1, call("+", 2, col(NULLABLE), col(PRICE)));
    measure("arith price / bidder", false, 1, call("/", 2, col(PRICE), col(BIDDER)));
    measure("arith price % 1000", false, 1, call("%", 2, col(PRICE), num(1000)));
    measure("arith x * y + x / y", false, 1, call("+", 2, call("*", 2, col(X), col(Y)), call("/", 2, col(X), col(Y))));
    measure("decimal 0.908 * price", false, 1, call("*", 2, dec(908, 3, 3), col(PRICE)));
    measure("decimal 0.908 * price BETWEEN (filter)", true, 2,
            call(">", 2, call("*", 2, dec(908, 3, 3), col(PRICE)), num(1000000)),
            call("<", 2, call("*", 2, dec(908, 3, 3), col(PRICE)), num(50000000)));
    measure("decimal (0.908 * price) / 3", false, 1, call("/", 2, call("*", 2, dec(908, 3, 3), col(PRICE)), num(3)));
    measure("logic price > c AND auction < c as a value", false, 1,
            call("and", 2, call(">", 2, col(PRICE), num(5000)), call("<", 2, col(AUCTION), num(15000))));
    measure("case price < c THEN 1 WHEN ... ELSE 3", false, 1,
            call("case", 5, call("<", 2, col(PRICE), num(10000)), num(1), call("<", 2, col(PRICE), num(1000000)),
                 num(2), num(3)));
    measure("case hour ranges THEN text", false, 1,
            call("case", 5,
                 call("and", 2, call(">=", 2, call("hour", 1, col(RT)), num(8)),
                      call("<=", 2, call("hour", 1, col(RT)), num(18))),
                 str("dayTime"),
                 call("or", 2, call("<=", 2, call("hour", 1, col(RT)), num(6)),
                      call(">=", 2, call("hour", 1, col(RT)), num(20))),
                 str("nightTime"), str("otherTime")));
    ck_expr *cheap = call("<", 2, col(PRICE), num(10000)), *dear = call("<", 2, col(PRICE), num(1000000));
    measure("case cheap THEN auction WHEN dear THEN bidder ELSE price", false, 1,
            call("case", 5, cheap, col(AUCTION), dear, col(BIDDER), col(PRICE)));
    measure("case cheap THEN channel WHEN dear THEN 'b' ELSE url", false, 1,
            call("case", 5, cheap, col(CHANNEL), dear, str("b"), col(URL)));
    measure("case cheap THEN auction > c ELSE bidder < c", false, 1,
            call("case", 3, cheap, call(">", 2, col(AUCTION), num(5000)), call("<", 2, col(BIDDER), num(5000))));
    measure("case early THEN auction ELSE bidder", false, 1,
            call("case", 3, call("<", 2, call("minute", 1, col(RT)), num(30)), col(AUCTION), col(BIDDER)));
    measure("case coalesce(n, auction)", false, 1, call("coalesce", 2, col(NULLABLE), col(AUCTION)));
    measure("case coalesce(n, 0)", false, 1, call("coalesce", 2, col(NULLABLE), num(0)));
}

static void texts(void) {
    const char *pattern = "(&|^)channel_id=([^&]*)";
    ck_expr *lower = call("lower", 1, col(CHANNEL)),
            *extract = call("regexp_extract", 3, col(URL), str(pattern), num(2));
    ck_expr *dir[3];
    for (int i = 0; i < 3; i++) dir[i] = call("split_index", 3, col(URL), str("/"), num(3 + i));
    measure("text channel = 'Google' (filter)", true, 1, call("=", 2, col(CHANNEL), str("Google")));
    measure("text channel IN (4 words) (filter)", true, 1,
            call("in", 5, lower, str("apple"), str("google"), str("facebook"), str("baidu")));
    measure("text url LIKE 'https%' (filter)", true, 1, call("like", 2, col(URL), str("https%")));
    measure("text url LIKE '%query=1' (filter)", true, 1, call("like", 2, col(URL), str("%query=1")));
    measure("text url LIKE '%&channel%' (filter)", true, 1, call("like", 2, col(URL), str("%&channel%")));
    measure("text url LIKE '%nosuch%' (filter)", true, 1, call("like", 2, col(URL), str("%nosuch%")));
    measure("text extra LIKE '%abc%' (filter)", true, 1, call("like", 2, col(EXTRA), str("%abc%")));
    measure("text channel LIKE '%oo%' (filter)", true, 1, call("like", 2, col(CHANNEL), str("%oo%")));
    measure("text url LIKE '%channel_id%' (filter)", true, 1, call("like", 2, col(URL), str("%channel_id%")));
    measure("text url LIKE '%item_htm%query%' (filter)", true, 1, call("like", 2, col(URL), str("%item_htm%query%")));
    measure("text lower(channel)", false, 1, lower);
    measure("text upper(url)", false, 1, call("upper", 1, col(URL)));
    measure("text char_length(extra)", false, 1, call("char_length", 1, col(EXTRA)));
    measure("text replace(extra, 'c', '')", false, 1, call("replace", 3, col(EXTRA), str("c"), str("")));
    measure("text substring(url, 9, 20)", false, 1, call("substring", 3, col(URL), num(9), num(20)));
    measure("text split_index(url, '/', 3), 4, 5", false, 3, dir[0], dir[1], dir[2]);
    measure("text channel || '-' || url", false, 1, call("||", 2, call("||", 2, col(CHANNEL), str("-")), col(URL)));
    measure("regex regexp_extract(url, channel_id)", false, 1, extract);
    measure("regex url ~ '[a-c]/item' (filter)", true, 1, call("~", 2, col(URL), str("[a-c]/item")));
    measure("regex q21: filter and case", true, 1,
            call("or", 2, call("is_not_null", 1, extract),
                 call("in", 5, lower, str("apple"), str("google"), str("facebook"), str("baidu"))));
    measure("time hour(rt)", false, 1, call("hour", 1, col(RT)));
    measure("time minute(rt)", false, 1, call("minute", 1, col(RT)));
    measure("time second(rt)", false, 1, call("second", 1, col(RT)));
    measure("time extract(epoch FROM rt)", false, 1, call("extract", 2, str("epoch"), col(RT)));
    measure("time year(rt), days in order", false, 1, call("year", 1, col(RT)));
    ck_expr *days = call("timestampadd", 3, str("day"), col(AUCTION), cast(col(RT), CK_TYPE_DATE));
    measure("time days at random", false, 1, days);
    measure("time year(days at random)", false, 1, call("year", 1, days));
    measure("time dayofyear(days at random)", false, 1, call("dayofyear", 1, days));
    measure("time date_trunc('hour', rt)", false, 1, call("date_trunc", 2, str("hour"), col(RT)));
    measure("time date_format(rt, 'yyyy-MM-dd')", false, 1, call("date_format", 2, col(RT), str("yyyy-MM-dd")));
    measure("time date_format(rt, 'HH:mm')", false, 1, call("date_format", 2, col(RT), str("HH:mm")));
    measure("time date_format(rt, '... ss.SSS')", false, 1,
            call("date_format", 2, col(RT), str("yyyy-MM-dd HH:mm:ss.SSS")));
    measure("cast price AS VARCHAR", false, 1, cast(col(PRICE), CK_TYPE_VARCHAR));
    measure("cast CAST(price AS VARCHAR) AS BIGINT", false, 1, cast(cast(col(PRICE), CK_TYPE_VARCHAR), CK_TYPE_BIGINT));
    measure("cast price AS DOUBLE", false, 1, cast(col(PRICE), CK_TYPE_DOUBLE));
    measure("cast rt AS VARCHAR", false, 1, cast(col(RT), CK_TYPE_VARCHAR));
}

int main(int argc, char **argv) {
    if (argc > 1) wanted = argv[1];
    ck_budget_init(&budget, ck_heap_system(), 0);
    mem = (ck_mem){&budget, CK_MEM_QUEUE};
    proc.cpu = ck_cpu_detect();
    proc.fs = ck_fs_system();
    ck_arena_init(&arena, mem, SIZE_MAX / 2);
    make_data();
    numbers();
    texts();
    for (int i = 0; i < BATCHES; i++) ck_batch_unref(&batches[i]);
    ck_arena_destroy(&arena);
    return 0;
}
