/* Avro and protobuf: the first byte chooses the format, then a schema's text up to a zero byte, then messages, each
 * with its length in a byte. Whatever they are: a schema is refused or read, a message is a row or a bad record, and a
 * row that is read can be written and read again as the same. */
#include "fuzz.h"

#include "format/harness_int.h"
#include "format/message.h"

enum { COLUMNS = 6 };

static ck_field element = {"element", NULL, true}, fields[COLUMNS];
static ck_type array;

static ck_schema make_table(void) {
    static const char *const names[COLUMNS] = {"i", "s", "d", "y", "t", "a"};
    const ck_kind kinds[COLUMNS] = {CK_TYPE_BIGINT, CK_TYPE_VARCHAR, CK_TYPE_DOUBLE, CK_TYPE_BYTES,
                                    CK_TYPE_TIMESTAMP_LTZ};
    element.type = ck_type_simple(CK_TYPE_BIGINT);
    array = (ck_type){CK_TYPE_ARRAY, 0, 0, &element, 1};
    for (int i = 0; i < COLUMNS; i++)
        fields[i] = (ck_field){names[i], i == COLUMNS - 1 ? &array : ck_type_simple(kinds[i]), true};
    return (ck_schema){fields, COLUMNS};
}

static ck_batch *decode(ck_harness *h, const char *format, const ck_schema *table, const ck_message_reader *r,
                        const void *p, size_t n) {
    ck_decoder_spec spec = {.format = format, .schema = table};
    ck_decoder *d;
    uint32_t number;
    size_t used;
    ck_buffer *buf = ck_buffer_new(h->mem, n);
    CK_ASSERT(buf);
    memcpy(buf->p, p, n);
    CK_ASSERT(ck_decoder_new(&h->proc, &spec, h->mem, ck_harness_bad, h, &d, &h->err) == CK_OK);
    CK_ASSERT(ck_decoder_add_reader(d, r, NULL, &number, &h->err) == CK_OK);
    CK_ASSERT(ck_decoder_begin(d, "topic", true, &h->err) == CK_OK);
    CK_ASSERT(ck_decoder_feed(d, buf, 0, n, 0, true, &used, &h->err) == CK_OK && used == n);
    ck_batch *b = ck_decoder_take(d);
    CK_ASSERT(b && ck_harness_print(h, table, b) == CK_OK);
    ck_decoder_free(d);
    ck_buffer_unref(&buf);
    return b;
}

static void frames_of(const uint8_t *p, const uint8_t *end, ck_bytes *out) {
    while (p < end) {
        size_t n = *p++;
        if (n > (size_t)(end - p)) n = (size_t)(end - p);
        ck_message_frame f = {.bytes = (uint32_t)n};
        CK_ASSERT(ck_bytes_append(out, &f, sizeof f) == CK_OK && (n == 0 || ck_bytes_append(out, p, n) == CK_OK));
        p += n;
    }
}

static void again(ck_harness *h, const char *format, const ck_schema *table, const ck_message_reader *r,
                  const ck_message_writer *w, const ck_batch *b) {
    ck_bytes out;
    size_t first = h->rows.n;
    ck_bytes_init(&out, h->mem, 1 << 24);
    for (uint32_t i = 0; i < b->row_count; i++) {
        ck_message_frame f = {0};
        size_t at = out.n;
        CK_ASSERT(ck_bytes_append(&out, &f, sizeof f) == CK_OK);
        if (ck_message_write(w, b, i, &out, &h->err) != CK_OK) { /* a NULL element, an unknown symbol */
            ck_bytes_destroy(&out);
            return;
        }
        f.bytes = (uint32_t)(out.n - at - sizeof f);
        memcpy(out.p + at, &f, sizeof f);
    }
    if (out.n) {
        ck_batch *second = decode(h, format, table, r, out.p, out.n);
        CK_ASSERT(h->rows.n == 2 * first && memcmp(h->rows.p, h->rows.p + first, first) == 0);
        ck_batch_unref(&second);
    }
    ck_bytes_destroy(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2 || size > 4000) return 0;
    ck_schema table = make_table();
    ck_message_format format = data[0] & 1 ? CK_MESSAGE_PROTOBUF : CK_MESSAGE_AVRO;
    const uint8_t *text = data + 1, *end = data + size, *zero = memchr(text, 0, size - 1);
    if (!zero) zero = end;
    ck_harness h;
    ck_arena a;
    ck_bytes frames;
    ck_harness_init(&h, ck_heap_system(), false);
    ck_arena_init(&a, h.mem, 1 << 24);
    ck_bytes_init(&frames, h.mem, 1 << 24);
    ck_message_text own = {"", {(const char *)text, (size_t)(zero - text)}};
    const ck_message_schema *schema;
    const ck_message_reader *r;
    const ck_message_writer *w;
    ck_message_path path;
    ck_status s = ck_message_parse(&a, format, &own, 1, &schema, &h.err);
    if (s == CK_OK) s = ck_message_find(schema, NULL, &path, &h.err);
    if (s == CK_OK) s = ck_message_reader_new(&a, schema, &path, &table, true, &r, &h.err);
    if (s == CK_OK && zero < end) {
        const char *name = format == CK_MESSAGE_AVRO ? "avro" : "protobuf";
        frames_of(zero + 1, end, &frames);
        if (frames.n) {
            ck_batch *b = decode(&h, name, &table, r, frames.p, frames.n);
            bool writes = ck_message_writer_new(&a, schema, &path, &table, &w, &h.err) == CK_OK;
            if (writes) again(&h, name, &table, r, w, b);
            ck_batch_unref(&b);
        }
    }
    ck_bytes_destroy(&frames);
    ck_arena_destroy(&a);
    ck_harness_destroy(&h);
    return 0;
}
