/* See builder.h: the columns of a batch built together. */
#include "data/builder_int.h"

ck_status ck_batch_builder_init(ck_batch_builder *b, ck_mem mem, const ck_schema *schema, uint32_t capacity) {
    CK_ASSERT(capacity <= CK_BATCH_ROWS_MAX);
    *b = (ck_batch_builder){.mem = mem, .schema = schema, .capacity = capacity};
    b->weights = ck_alloc(mem, capacity);
    b->columns = ck_alloc_array(mem, schema->field_count, sizeof *b->columns);
    ck_status s = b->weights && b->columns ? CK_OK : CK_NOMEM;
    if (b->columns) memset(b->columns, 0, schema->field_count * sizeof *b->columns);
    for (uint32_t i = 0; i < schema->field_count && s == CK_OK; i++)
        s = ck_column_builder_init(&b->columns[i], mem, schema->fields[i].type, capacity);
    if (s != CK_OK) ck_batch_builder_destroy(b);
    return s;
}

void ck_batch_builder_take_with(ck_batch_builder *b, ck_cpu cpu) {
    for (uint32_t i = 0; i < b->schema->field_count; i++) ck_column_builder_take_with(&b->columns[i], cpu);
}

void ck_batch_builder_destroy(ck_batch_builder *b) {
    if (b->columns)
        for (uint32_t i = 0; i < b->schema->field_count; i++) ck_column_builder_destroy(&b->columns[i]);
    ck_free(b->mem, b->columns, b->schema ? b->schema->field_count * sizeof *b->columns : 0);
    ck_free(b->mem, b->weights, b->capacity);
    *b = (ck_batch_builder){0};
}

void ck_batch_builder_row(ck_batch_builder *b, int weight) {
    CK_DASSERT(b->row_count < b->capacity && (weight == 1 || weight == -1));
    b->weights[b->row_count++] = (int8_t)weight;
    b->has_weights |= weight != 1;
}

void ck_batch_builder_undo(ck_batch_builder *b) {
    for (uint32_t i = 0; i < b->schema->field_count; i++) ck_column_builder_truncate(&b->columns[i], b->row_count);
}

static void gather_weights(ck_batch_builder *b, const ck_batch *from, const uint16_t *rows, uint32_t n) {
    int8_t *to = b->weights + b->row_count;
    if (!from->weights) {
        memset(to, 1, n);
        return;
    }
    int any = 0;
    for (uint32_t i = 0; i < n; i++) {
        to[i] = from->weights[rows[i]];
        any |= to[i];
    }
    b->has_weights |= any < 0; /* the sign bit of some -1 */
}

ck_status ck_batch_builder_gather(ck_batch_builder *b, const ck_batch *from, const uint16_t *rows, uint32_t n) {
    CK_ASSERT(n <= b->capacity - b->row_count && from->column_count == b->schema->field_count);
    for (uint32_t i = 0; i < from->column_count; i++) {
        if (!from->columns[i]) continue;
        ck_status s = ck_build_gather(&b->columns[i], from->columns[i], rows, n);
        if (CK_UNLIKELY(s != CK_OK)) {
            ck_batch_builder_undo(b);
            return s;
        }
    }
    gather_weights(b, from, rows, n);
    b->row_count += n;
    return CK_OK;
}

static bool is_pruned(const ck_batch_builder *b, uint32_t i) {
    CK_ASSERT(b->columns[i].length == b->row_count || b->columns[i].length == 0);
    return b->columns[i].length < b->row_count;
}

ck_batch *ck_batch_builder_finish(ck_batch_builder *b) {
    uint32_t count = b->schema->field_count;
    ck_batch *out = ck_batch_new(b->mem, count, b->row_count, false, b->has_weights);
    ck_status s = out ? CK_OK : CK_NOMEM;
    uint32_t prepared = 0;
    for (; prepared < count && s == CK_OK; prepared++)
        if (!is_pruned(b, prepared)) s = ck_column_builder_prepare(&b->columns[prepared]);
    if (s != CK_OK) {
        for (uint32_t i = 0; i < prepared; i++)
            if (!is_pruned(b, i)) ck_column_builder_cancel(&b->columns[i]);
        if (out) ck_batch_unref(&out);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++)
        if (!is_pruned(b, i)) out->columns[i] = ck_column_builder_take(&b->columns[i]);
    if (b->has_weights && b->row_count) memcpy(out->weights, b->weights, b->row_count);
    b->row_count = 0;
    b->has_weights = false;
    return out;
}

static size_t builder_bytes(const ck_column_builder *b) {
    size_t bytes = ck_phys_data_bytes(b->phys, b->length) + b->long_bytes;
    for (uint32_t i = 0; i < b->child_count; i++) bytes += builder_bytes(&b->children[i]);
    return bytes;
}

size_t ck_batch_builder_bytes(const ck_batch_builder *b) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < b->schema->field_count; i++)
        if (b->columns[i].length) bytes += builder_bytes(&b->columns[i]);
    return bytes;
}
