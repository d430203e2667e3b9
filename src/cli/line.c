/* See line.h. */
#include "cli/line.h"

#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <wchar.h>

#include "cli/wait.h"

enum { HISTORY_LINES = 1000, WORD_BYTES = 128 };

struct line_editor {
    EditLine *el;
    History *history;
    HistEvent event;
    char *file, *text;
    const char *prompt;
    line_words words;
    void *arg;
    bool cancelled; /* by Ctrl-C, which is a key while a line is read */
};

static char *prompt_of(EditLine *el) {
    line_editor *l = NULL;
    el_get(el, EL_CLIENTDATA, &l);
    return (char *)(uintptr_t)l->prompt; /* libedit only reads it */
}

/* ---- completion ---- */

typedef struct completion {
    const char *prefix;
    size_t prefix_n, count;
    char common[WORD_BYTES]; /* of all words that fit */
    bool show;
} completion;

static bool inside_character(char c) { return (c & 0xc0) == 0x80; }

static int characters(const char *text, size_t bytes) {
    int n = 0;
    for (size_t i = 0; i < bytes; i++) n += !inside_character(text[i]);
    return n;
}

static void consider(void *to, const char *word) {
    completion *c = to;
    if (strncasecmp(word, c->prefix, c->prefix_n) != 0 || strlen(word) >= WORD_BYTES) return;
    if (c->show) printf("%s%s", c->count ? "  " : "\n", word);
    if (c->count++ == 0) {
        memcpy(c->common, word, strlen(word) + 1);
        return;
    }
    size_t n = 0;
    while (c->common[n] && strncasecmp(&c->common[n], &word[n], 1) == 0) n++;
    while (n > 0 && inside_character(word[n])) n--;
    c->common[n] = 0;
}

static bool in_word(char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80);
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* The word in front of the one that begins at start. */
static void word_before(const char *buffer, const char *start, char *out) {
    const char *end = start;
    while (end > buffer && is_blank(end[-1])) end--;
    const char *begin = end;
    while (begin > buffer && !is_blank(begin[-1])) begin--;
    size_t n = end < start && end - begin < WORD_BYTES ? (size_t)(end - begin) : 0;
    memcpy(out, begin, n);
    out[n] = 0;
}

static unsigned char complete(EditLine *el, int key) {
    (void)key;
    line_editor *l = NULL;
    el_get(el, EL_CLIENTDATA, &l);
    const LineInfo *line = el_line(el);
    const char *start = line->cursor;
    while (start > line->buffer && in_word(start[-1])) start--;
    char prefix[WORD_BYTES], before[WORD_BYTES];
    completion c = {.prefix = prefix, .prefix_n = (size_t)(line->cursor - start)};
    if (c.prefix_n == 0 || c.prefix_n >= sizeof prefix) return CC_ERROR;
    memcpy(prefix, start, c.prefix_n);
    prefix[c.prefix_n] = 0;
    word_before(line->buffer, start, before);
    l->words(l->arg, before, consider, &c);
    if (c.count == 0) return CC_ERROR;
    if (c.count == 1 || strlen(c.common) > c.prefix_n) {
        el_deletestr(el, characters(prefix, c.prefix_n));
        if (el_insertstr(el, c.common) != 0) return CC_ERROR;
        if (c.count == 1) el_insertstr(el, " ");
        return CC_REFRESH;
    }
    c = (completion){.prefix = prefix, .prefix_n = c.prefix_n, .show = true};
    l->words(l->arg, before, consider, &c);
    printf("\n");
    return CC_REDISPLAY;
}

/* ---- the editor ---- */

void line_use_utf8(void) { setlocale(LC_CTYPE, "C.UTF-8"); } /* where there is none, other characters cannot be typed */

/* The next character typed: 1, 0 at the end, -1. What is no character is passed over. */
static int get_character(EditLine *el, wchar_t *out) {
    (void)el;
    mbstate_t state = {0};
    for (;;) {
        char byte;
        if (!wait_readable(STDIN_FILENO, false)) return 0;
        ssize_t n = read(STDIN_FILENO, &byte, 1);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return (int)n;
        size_t used = mbrtowc(out, &byte, 1, &state);
        if (used == (size_t)-1) { /* it may begin another one */
            state = (mbstate_t){0};
            used = mbrtowc(out, &byte, 1, &state);
        }
        if (used <= 1) return 1;
        if (used == (size_t)-1) state = (mbstate_t){0};
    }
}

static unsigned char cancel(EditLine *el, int key) {
    (void)key;
    line_editor *l = NULL;
    el_get(el, EL_CLIENTDATA, &l);
    l->cancelled = true;
    return CC_EOF;
}

line_editor *line_editor_new(const char *history_file, line_words words, void *arg) {
    line_editor *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    l->words = words, l->arg = arg, l->prompt = "";
    l->el = el_init("clink", stdin, stdout, stderr);
    l->history = history_init();
    if (!l->el || !l->history || (history_file && !(l->file = strdup(history_file)))) {
        line_editor_free(l);
        return NULL;
    }
    history(l->history, &l->event, H_SETSIZE, HISTORY_LINES);
    history(l->history, &l->event, H_SETUNIQUE, 1);
    if (l->file) history(l->history, &l->event, H_LOAD, l->file);
    el_set(l->el, EL_CLIENTDATA, l);
    el_set(l->el, EL_PROMPT, prompt_of);
    el_set(l->el, EL_EDITOR, "emacs");
    el_set(l->el, EL_SIGNAL, 0);
    el_set(l->el, EL_GETCFN, get_character);
    el_set(l->el, EL_HIST, history, l->history);
    el_set(l->el, EL_ADDFN, "clink-complete", "complete a name", complete);
    el_set(l->el, EL_BIND, "^I", "clink-complete", NULL);
    el_set(l->el, EL_SETTY, "-d", "-isig", NULL);
    el_set(l->el, EL_ADDFN, "clink-cancel", "forget the statement", cancel);
    el_set(l->el, EL_BIND, "^C", "clink-cancel", NULL);
    el_set(l->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_source(l->el, NULL); /* the user's ~/.editrc */
    return l;
}

void line_editor_free(line_editor *l) {
    if (!l) return;
    if (l->file && l->history) history(l->history, &l->event, H_SAVE, l->file);
    if (l->history) history_end(l->history);
    if (l->el) el_end(l->el);
    free(l->file);
    free(l->text);
    free(l);
}

line_result line_read(line_editor *l, const char *prompt, char **text) {
    int bytes = 0;
    l->prompt = prompt, l->cancelled = false;
    const char *line = el_gets(l->el, &bytes);
    if (l->cancelled) {
        el_reset(l->el);
        printf("^C\n");
        return LINE_CANCELLED;
    }
    if (!line || bytes <= 0) return LINE_END;
    free(l->text);
    if (!(l->text = strndup(line, (size_t)bytes))) return LINE_END;
    l->text[strcspn(l->text, "\n")] = 0;
    if (*l->text) history(l->history, &l->event, H_ENTER, l->text);
    *text = l->text;
    return LINE_READ;
}
