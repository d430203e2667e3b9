"""Every message of src/sql that refuses a script is reached by a golden of tests/sql/error, or stands below with why not."""
import glob
import os
import re
import sys

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
CALL = re.compile(r"\b[a-z_]*(?:fail|refuse)[a-z_]*\s*\(")
TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
ELSEWHERE = {  # beginnings of messages
    "DISTINCT takes an argument": "the grammar refuses it first",
    "* stands only for": "the grammar refuses it first",
    "this belongs into GROUP BY": "the grammar refuses it first",
    "a window stands in GROUP BY": "a window in ROLLUP is refused where it is bound",
    "ROLLUP has more than": "more than 32 keys are refused first",
    "rows of \\\"%s\\\" change here": "no source changes yet and has a late table",
    "IN over a column of the query around": "a column of the query around is refused in the place of a value first",
    "a window over PROCTIME() takes rows": "rows that change cannot compute PROCTIME()",
    "a SESSION takes rows that do not change": "tests/system/test_windows.py",
    "a SESSION window is known only": "the filter of a session is refused where it is lowered",
    "%zu columns are too many": "tests/system/test_large_sql.py",
    "%u columns are too many": "tests/system/test_large_sql.py, and goldens for CREATE TABLE and VALUES",
    "there are %d tables": "a catalog of a million tables",
    "is not a catalog": "tests/system/test_catalog.py",
    "has version %llu": "tests/system/test_catalog.py",
    "only CREATE TABLE, VIEW and FUNCTION": "tests/system/test_catalog.py",
    "%s takes more than %zu MiB": "tests/system/test_large_sql.py",
    "%s: %zu bytes of SQL": "tests/system/test_large_sql.py, where the command says it first",
    "table \\\"%s\\\": dead_letter_table": "tests/system/test_bad_rows.py",
    "%.*s takes a value and how many": "tests/system/test_tool.py",
    "a UNION ALL has": "what changed between two scripts: tests/system/test_evolve.py",
    "the script makes no table": "tests/system/test_bad_rows.py",
    "no statement of the script reads": "tests/system/test_bad_rows.py",
    "a table that is looked up in": "refused where the join is bound",
    "the job has more than": "tests/system/test_large_sql.py",
    "the plan has more than": "tests/system/test_large_sql.py",
    "result_params is no JSON": "the engine gives it",
    "nothing takes the result": "the engine takes it",
    "%s: no memory for the syntax": "memory",
    "unexpected byte": "the lexer takes every byte that is valid UTF-8",
    "a NUL byte": "src/sql/parse/refusals_test.c",
    "byte 0x%02x is not valid": "src/sql/parse/refusals_test.c",
    "this is nested deeper": "tests/system/test_large_sql.py",
    "there is a function \\\"%s\\\" of a plugin": "tests/system/test_plugins.py",
    "every ": "a bug",
    "flex ": "a bug",
}


def arguments(src, i):
    """What stands between the parenthesis at i and its end."""
    depth, quote, j = 0, None, i
    while True:
        c = src[j]
        if quote:
            j += c == "\\"
            quote = None if c == quote else quote
        elif c in "\"'":
            quote = c
        else:
            depth += (c == "(") - (c == ")")
            if depth == 0:
                return src[i + 1:j]
        j += 1


def messages():
    for path in sorted(glob.glob(os.path.join(TOP, "src", "sql", "**", "*.[cyl]"), recursive=True)):
        if path.endswith("_test.c"):
            continue
        with open(path) as f:
            src = f.read()
        for m in CALL.finditer(src):
            found = re.search(r'"(?:[^"\\]|\\.)*"(?:\s*"(?:[^"\\]|\\.)*")*', arguments(src, m.end() - 1))
            text = "".join(t[1:-1] for t in TEXT.findall(found.group())) if found else ""
            if " " in text and len(text) >= 8:
                yield os.path.relpath(path, TOP), src[:m.start()].count("\n") + 1, text


def main():
    goldens = ""
    for path in glob.glob(os.path.join(TOP, "tests", "sql", "error", "*.expected")):
        with open(path) as f:
            goldens += f.readline()
    count, missing = 0, []
    for path, line, text in messages():
        count += 1
        parts = re.split(r"%[-0-9.*]*(?:ll|z|h|t|l)*[a-zA-Z]", text.replace('\\"', '"').replace("\\\\", "\\"))
        if not re.search(".*?".join(re.escape(p.replace("%%", "%")) for p in parts), goldens) and not text.startswith(tuple(ELSEWHERE)):
            missing.append(f"{path}:{line}: no tests/sql/error/error_*.sql gives \"{text}\"")
    print("\n".join(missing) if missing else f"{count} messages are reached by goldens, or it is said why not")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
