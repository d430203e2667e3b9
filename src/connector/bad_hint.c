/* See bad_hint.h. */
#include "connector/bad_hint.h"

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static ck_view trimmed(ck_view v) {
    while (v.n && is_blank(v.p[0])) v.p++, v.n--;
    while (v.n && is_blank(v.p[v.n - 1])) v.n--;
    return v;
}

/* Text that is JSON, but is not laid out as one object a line. */
static const char *of_layout(ck_view raw) {
    raw = trimmed(raw);
    if (raw.n && raw.p[0] == '[') return "; JSON is read as one object a line, which jq -c '.[]' makes of an array";
    if (ck_view_is(raw, "{"))
        return "; JSON is read as one object a line, which jq -c . makes of objects over several lines";
    return NULL;
}

/* A number where JSON has a time. */
static bool is_epoch(const ck_bad_record *bad) {
    const char *p = bad->reason;
    if (*p == '-') p++;
    return *p >= '0' && *p <= '9' && strstr(p, " is not a TIMESTAMP");
}

/* Whether the record has a field of this name. */
static bool names(ck_view record, const char *field) {
    size_t n = strlen(field);
    for (size_t i = 0; n && i + n <= record.n; i++) {
        bool begins = i == 0 || strchr(" ,;|\t\"", record.p[i - 1]) != NULL;
        bool ends = i + n == record.n || strchr(" ,;|\t\"\r", record.p[i + n]) != NULL;
        if (begins && ends && ck_view_eq_nocase((ck_view){record.p + i, n}, (ck_view){field, n})) return true;
    }
    return false;
}

/* A record of one field that something else than the delimiter would part. */
static const char *of_delimiter(const ck_bad_record *bad) {
    if (strncmp(bad->reason, "1 field where ", 14) != 0) return NULL;
    if (memchr(bad->raw.p, ';', bad->raw.n)) return "; delimiter = ';' parts fields at semicolons";
    if (memchr(bad->raw.p, '\t', bad->raw.n)) return "; delimiter = '\\t' parts fields at tabs";
    if (memchr(bad->raw.p, '|', bad->raw.n)) return "; delimiter = '|' parts fields at bars";
    if (memchr(bad->raw.p, ',', bad->raw.n)) return "; delimiter = ',' parts fields at commas";
    return NULL;
}

/* Every field begins as a name does. */
static bool is_all_names(ck_view record) {
    for (size_t i = 0; i <= record.n; i++) {
        if (i > 0 && !strchr(",;|\t", record.p[i - 1])) continue;
        if (i < record.n && record.p[i] == '"') i++;
        unsigned char c = i < record.n ? (unsigned char)record.p[i] : 0;
        if (!((c | 32) >= 'a' && (c | 32) <= 'z') && c != '_' && c < 128) return false;
    }
    return true;
}

/* A first record of another number of fields, which are words. */
static bool is_odd_header(const ck_bad_record *bad) {
    return bad->offset == 0 && strstr(bad->reason, " where ") && strstr(bad->reason, " expected") &&
           is_all_names(bad->raw);
}

const char *ck_bad_hint_for(const ck_bad_hint *of, const ck_bad_record *bad) {
    const char *hint = NULL;
    bool json = of->format && strcmp(of->format, "json") == 0, csv = of->format && strcmp(of->format, "csv") == 0;
    if (json) hint = of_layout(bad->raw);
    if (json && !hint && is_epoch(bad))
        hint = "; a number is read as BIGINT, and ts AS TO_TIMESTAMP_LTZ(ms, 3) makes a time of milliseconds";
    if (csv) hint = of_delimiter(bad);
    if (csv && !hint && of->first_is_row && bad->offset == 0 && bad->field && names(bad->raw, bad->field))
        hint = "; header = 'true' takes the first record for the names of columns";
    if (csv && !hint && of->first_is_row && is_odd_header(bad))
        hint =
            "; where the first record is the names of columns, header = 'true' says so, and finds those of the table "
            "among them";
    if (hint) return hint;
    return of->on_error_is_given ? ""
                                 : "; on_error = 'skip' leaves such records out, 'dead_letter' puts them into a table";
}
