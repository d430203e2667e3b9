"""Random queries as trees that each engine's dialect is printed from, and smaller ones of a query that failed.

Kept deterministic by construction: a total ORDER BY stands under every LIMIT and ROW_NUMBER, sums of DOUBLE are only shown (never filtered, grouped or
ordered by), divisors are guarded, NULLS FIRST or LAST is written."""
import copy
import random

INT, DBL, STR, BOOL, TS, DATE, TIME, DEC, SHOWN = "int", "dbl", "str", "bool", "ts", "date", "time", "dec", "shown"
INTS, STRS, MAP, ROW, NESTED = "ints", "strs", "map", "row", ("ints", "strs", "map", "row")  # ARRAY<BIGINT>, ARRAY<VARCHAR>, MAP<VARCHAR, BIGINT>, ROW<city, zip>

TABLES = {
    "flights": [("month", INT), ("day", INT), ("dep_time", INT), ("dep_delay", INT), ("arr_delay", INT), ("carrier", STR), ("flight", INT),
                ("tailnum", STR), ("origin", STR), ("dest", STR), ("air_time", INT), ("distance", INT), ("hour", INT), ("time_hour", TS)],
    "planes": [("tailnum", STR), ("year", INT), ("manufacturer", STR), ("engines", INT), ("seats", INT), ("engine", STR)],
    "airports": [("faa", STR), ("name", STR), ("lat", DBL), ("lon", DBL), ("alt", INT), ("tz", INT), ("dst", STR)],
    "orders": [("id", INT), ("day", DATE), ("amount", DEC), ("tags", STRS), ("sizes", INTS), ("props", MAP), ("ship", ROW)],
    "bids": [("auction", INT), ("bidder", INT), ("price", DEC), ("channel", STR), ("url", STR), ("date_time", TS)],
}
JOINS = [("flights", "tailnum", "planes", "tailnum"), ("flights", "dest", "airports", "faa"), ("flights", "origin", "airports", "faa"),
         ("flights", "month", "bids", "auction"), ("flights", "hour", "planes", "engines"), ("planes", "engines", "airports", "tz"),
         ("bids", "bidder", "bids", "auction"), ("orders", "id", "bids", "bidder"), ("orders", "id", "flights", "flight"), ("airports", "alt", "bids", "bidder"), ("flights", "flight", "flights", "flight")]
NUMBERS = {"month": (1, 12), "day": (1, 28), "dep_time": (500, 2200), "dep_delay": (-8, 60), "arr_delay": (-30, 60), "flight": (1, 3000), "air_time": (30, 350),
           "distance": (100, 2500), "hour": (5, 22), "year": (1990, 2010), "engines": (1, 4), "seats": (2, 300), "alt": (0, 3000), "tz": (-9, -5),
           "auction": (1, 40), "bidder": (1, 300), "id": (1, 300)}
WORDS = {"carrier": ["UA", "AA", "DL"], "origin": ["JFK", "EWR"], "dest": ["ATL", "ORD"], "channel": ["Apple", "Google"], "dst": ["A", "N"],
         "engine": ["Turbo-fan"], "manufacturer": ["BOEING"]}


class E:
    """An expression: `text` with {0}, {1} ... for its arguments; `duck` where DuckDB writes it differently."""

    def __init__(self, text, args=(), typ=None, duck=None):
        self.text, self.args, self.typ, self.duck = text, list(args), typ, duck

    def sql(self, d):
        text = self.duck if d == "duck" and self.duck else self.text
        return text.format(*[a.sql(d) for a in self.args]) if self.args else text


class Table:
    def __init__(self, name, alias):
        self.name, self.alias = name, alias

    def columns(self):
        return [(f"{self.alias}.{n}", t) for n, t in TABLES[self.name]]

    def sql(self, d):
        return f"{self.name} AS {self.alias}"


class Sub:
    def __init__(self, query, alias):
        self.query, self.alias = query, alias

    def columns(self):
        return [(f"{self.alias}.{n}", t) for n, t in self.query.columns()]

    def sql(self, d):
        return f"({self.query.sql(d)}) AS {self.alias}"


class Join:
    """With ON; or with the columns of USING; or NATURAL, which has the same columns but does not say so."""

    def __init__(self, kind, left, right, on, using=(), natural=False):
        self.kind, self.left, self.right, self.on, self.using, self.natural = kind, left, right, on, list(using), natural

    def columns(self):
        merged = [(n, t) for n, t in self.using]
        return merged + self.left.columns() + self.right.columns()

    def sql(self, d):
        if self.natural:
            return f"{self.left.sql(d)} NATURAL {self.kind} JOIN {self.right.sql(d)}"
        condition = " USING (" + ", ".join(n for n, _ in self.using) + ")" if self.using else " ON " + " AND ".join(c.sql(d) for c in self.on)
        return f"{self.left.sql(d)} {self.kind} JOIN {self.right.sql(d)}{condition}"


class Unnest:
    """Elements of an array of the rows on the left, made of their columns or a column itself."""

    def __init__(self, left, elements, alias, column=None):
        self.left, self.elements, self.alias, self.column = left, elements, alias, column

    def columns(self):
        typ = {STRS: STR, INTS: INT}[self.column[1]] if self.column else self.elements[0].typ
        return self.left.columns() + [(f"{self.alias}.v", typ)]

    def sql(self, d):
        array = self.column[0] if self.column else ("ARRAY" if d == "ours" else "") + "[" + ", ".join(e.sql(d) for e in self.elements) + "]"
        return f"{self.left.sql(d)} CROSS JOIN UNNEST({array}) AS {self.alias}(v)"


class With:
    """A query with a name, used as often as the query behind it wants."""

    def __init__(self, name, query, body):
        self.name, self.query, self.body = name, query, body
        self.order = self.limit = None

    def columns(self):
        return self.body.columns()

    def sql(self, d):
        return f"WITH {self.name} AS ({self.query.sql(d)}) {self.body.sql(d)}"


class Named:
    """A table that a WITH made."""

    def __init__(self, name, columns, alias):
        self.name, self.named, self.alias = name, columns, alias

    def columns(self):
        return [(f"{self.alias}.{n}", t) for n, t in self.named]

    def sql(self, d):
        return f"{self.name} AS {self.alias}"


class Select:
    def __init__(self, items, source):
        self.items, self.source = items, source  # [(E, name)]
        self.where, self.having, self.distinct, self.group, self.grouping = [], [], False, [], None
        self.order, self.limit, self.offset = [], None, None  # [(E, "ASC NULLS FIRST")]

    def columns(self):
        return [(n, e.typ) for e, n in self.items]

    def sql(self, d):
        s = "SELECT " + ("DISTINCT " if self.distinct else "") + ", ".join(f"{e.sql(d)} AS {n}" for e, n in self.items)
        s += f" FROM {self.source.sql(d)}"
        if self.where:
            s += " WHERE " + " AND ".join(f"({c.sql(d)})" for c in self.where)
        if self.group:
            keys = ", ".join(g.sql(d) for g in self.group)
            if isinstance(self.grouping, list):  # lists of numbers of keys
                sets = ["(" + ", ".join(self.group[i].sql(d) for i in g if i < len(self.group)) + ")" for g in self.grouping]
                s += " GROUP BY GROUPING SETS (" + ", ".join(sets) + ")"
            else:
                s += " GROUP BY " + (f"{self.grouping} ({keys})" if self.grouping else keys)
        if self.having:
            s += " HAVING " + " AND ".join(f"({c.sql(d)})" for c in self.having)
        if self.order:
            s += " ORDER BY " + ", ".join(f"{e.sql(d)} {how}" for e, how in self.order)
        if self.limit is not None:
            s += f" LIMIT {self.limit}"
        if self.offset:
            s += f" OFFSET {self.offset}"
        return s


class SetOp:
    def __init__(self, op, left, right):
        self.op, self.left, self.right, self.order, self.limit = op, left, right, [], None

    def columns(self):
        return self.left.columns()

    def sql(self, d):
        return f"({self.left.sql(d)}) {self.op} ({self.right.sql(d)})"


class Generator:
    def __init__(self, seed):
        self.r, self.names, self.named = random.Random(seed), 0, None

    def chance(self, p):
        return self.r.random() < p

    def alias(self, letter="t"):
        self.names += 1
        return f"{letter}{self.names}"

    # ---- expressions over columns [(name, type)] ----

    def pick(self, columns, typ):
        return self.r.choice([c for c in columns if c[1] == typ] or [None])

    def literal(self, typ, near=None):
        r = self.r
        if typ == INT and near in NUMBERS and self.chance(0.8):
            return E(str(r.randint(*NUMBERS[near])), typ=INT)
        if typ == INT:
            return E(str(r.choice([0, 1, 2, 3, 5, 10, 12, 100, 500, 1000, -1, -5])), typ=INT)
        if typ == DBL:
            return E(r.choice(["0e0", "1.5e0", "40e0", "-75.25e0", "-100e0"]), typ=DBL)
        if typ == DEC:
            return E(r.choice(["0.5", "10.25", "100.00", "50.00", "-3.75"]), typ=DEC)
        if typ == STR:
            return E("'" + r.choice(WORDS.get(near, ["A", "UA", "JFK", "N5", "zz", "https://www.nexmark.com/5", ""])) + "'", typ=STR)
        if typ == TS:
            return E(f"TIMESTAMP '2013-{r.randint(1, 12):02}-{r.randint(1, 28):02} {r.randint(0, 23):02}:00:00'", typ=TS)
        if typ == DATE:
            return E(f"DATE '2013-{r.randint(1, 12):02}-{r.randint(1, 28):02}'", typ=DATE)
        if typ == TIME:
            return E(f"TIME '{r.randint(0, 23):02}:{r.choice([0, 0, 30]):02}:00{r.choice(['', '', '.5'])}'", typ=TIME)
        return E(r.choice(["TRUE", "FALSE"]), typ=BOOL)

    def expr(self, columns, typ, depth=2):
        r = self.r
        column = self.pick(columns, typ)
        if depth == 0 or (column and self.chance(0.45)):
            return E(column[0], typ=typ) if column and self.chance(0.93) else self.literal(typ, column and column[0].split(".")[-1])
        sub = lambda t: self.expr(columns, t, depth - 1)
        if typ in NESTED:
            return self.nested(columns, typ, depth)
        if self.chance(0.06) and typ != BOOL:
            return self.case(columns, typ, depth)
        if self.chance(0.06):
            found = self.inside(columns, typ, depth)
            if found:
                return found
        if self.chance(0.12) and typ != BOOL:
            return E("CASE WHEN {0} THEN {1} ELSE {2} END", [self.condition(columns, depth - 1), sub(typ), sub(typ)], typ)
        if self.chance(0.1):
            return E("COALESCE({0}, {1})", [sub(typ), self.literal(typ)], typ)
        if self.chance(0.06):
            return E("NULLIF({0}, {1})", [sub(typ), sub(typ)], typ)
        if typ == INT:
            return r.choice([
                lambda: E("({0} + {1})", [sub(INT), sub(INT)], INT), lambda: E("({0} - {1})", [sub(INT), sub(INT)], INT),
                lambda: E("({0} * {1})", [sub(INT), self.literal(INT)], INT), lambda: E("ABS({0})", [sub(INT)], INT),
                lambda: E("({0} / NULLIF({1}, 0))", [sub(INT), self.literal(INT)], INT, "({0} // NULLIF({1}, 0))"),
                lambda: E("({0} % NULLIF({1}, 0))", [sub(INT), self.literal(INT)], INT), lambda: E("CHAR_LENGTH({0})", [sub(STR)], INT, "LENGTH({0})"),
                lambda: E("EXTRACT(" + r.choice(["HOUR", "DAY", "MONTH", "YEAR", "DOY", "DOW", "WEEK", "QUARTER", "MINUTE"]) + " FROM {0})", [sub(TS)], INT),
                lambda: E("EXTRACT(" + r.choice(["DAY", "MONTH", "ISODOW", "DOY"]) + " FROM {0})", [sub(DATE)], INT),
                lambda: (lambda u: E("TIMESTAMPDIFF(" + u + ", {0}, {1})", [sub(TS), sub(TS)], INT, "date_sub('" + u + "', {0}, {1})"))(r.choice(["DAY", "HOUR", "MONTH"])),
                lambda: E("({0} - {1})", [sub(DATE), sub(DATE)], INT), lambda: E("CAST({0} AS BIGINT)", [sub(DEC)], INT),
                lambda: E("POSITION('A' IN {0})", [sub(STR)], INT), lambda: E("SIGN({0})", [sub(INT)], INT),
                lambda: E("GREATEST({0}, {1})", [sub(INT), self.literal(INT)], INT),
            ])()
        if typ == STR:
            return r.choice([
                lambda: E("({0} || {1})", [sub(STR), sub(STR)], STR), lambda: E("LOWER({0})", [sub(STR)], STR), lambda: E("UPPER({0})", [sub(STR)], STR),
                lambda: E("SUBSTRING({0}, {1}, {2})", [sub(STR), E(str(r.randint(1, 3)), typ=INT), E(str(r.randint(0, 4)), typ=INT)], STR),
                lambda: E("CAST({0} AS VARCHAR)", [sub(INT)], STR), lambda: E("TRIM({0})", [sub(STR)], STR),
                lambda: E("REPLACE({0}, 'A', 'bb')", [sub(STR)], STR), lambda: E("CAST({0} AS VARCHAR)", [sub(DATE)], STR),
                lambda: E("CONCAT({0}, {1})", [sub(STR), sub(STR)], STR), lambda: E("LPAD({0}, 4, '*')", [sub(STR)], STR),
            ])()
        if typ == DBL:
            return E(r.choice(["({0} + {1})", "({0} - {1})", "({0} * {1})"]), [sub(DBL), sub(DBL)], DBL) if self.chance(0.6) else E("CAST({0} AS DOUBLE)", [sub(INT)], DBL)
        if typ == DEC:
            return r.choice([
                lambda: E(r.choice(["({0} + {1})", "({0} - {1})"]), [sub(DEC), sub(DEC)], DEC), lambda: E("({0} * {1})", [sub(DEC), self.literal(DEC)], DEC),
                lambda: E("CAST({0} AS DECIMAL(14, 2))", [sub(INT)], DEC), lambda: E("CAST({0} AS DECIMAL(12, 1))", [sub(DEC)], DEC),
                lambda: E("ROUND({0}, 1)", [sub(DEC)], DEC), lambda: E("ABS({0})", [sub(DEC)], DEC), lambda: E("(- {0})", [sub(DEC)], DEC),
            ])()
        if typ == TS and self.chance(0.3):
            unit = r.choice(["HOUR", "DAY", "WEEK", "MONTH", "YEAR"])
            return r.choice([lambda: E("DATE_TRUNC('" + unit + "', {0})", [sub(TS)], TS), lambda: E("CAST({0} AS TIMESTAMP)", [sub(DATE)], TS),
                             lambda: E("({0} - INTERVAL '1 12:30:00' DAY TO SECOND)", [sub(TS)], TS, "({0} - INTERVAL '1 day 12 hours 30 minutes')")])()
        if typ == TS:
            return E("({0} + INTERVAL '" + str(r.randint(1, 40)) + "' " + r.choice(["HOUR", "DAY", "MONTH"]) + ")", [sub(TS)], TS)
        if typ == DATE:
            return r.choice([lambda: E("CAST({0} AS DATE)", [sub(TS)], DATE),
                             lambda: E("CAST(({0} + INTERVAL '" + str(r.randint(1, 40)) + "' " + r.choice(["DAY", "MONTH"]) + ") AS DATE)", [sub(DATE)], DATE),
                             lambda: E("({0} + {1})", [sub(DATE), E(str(r.randint(-40, 40)), typ=INT)], DATE)])()
        if typ == TIME:
            return E("CAST({0} AS TIME)", [sub(TS)], TIME)
        return self.condition(columns, depth - 1)

    def case(self, columns, typ, depth):
        """CASE of a value, or of several conditions, with and without ELSE."""
        sub = lambda t: self.expr(columns, t, depth - 1)
        if self.chance(0.5):
            of = self.r.choice([INT, STR])
            near = self.pick(columns, of)
            near = near and near[0].split(".")[-1]
            return E("CASE {0} WHEN {1} THEN {2} WHEN {3} THEN {4}" + (" ELSE {5}" if self.chance(0.6) else "") + " END",
                     [sub(of), self.literal(of, near), sub(typ), self.literal(of, near), sub(typ), sub(typ)], typ)
        return E("CASE WHEN {0} THEN {1} WHEN {2} THEN {3}" + (" ELSE {4}" if self.chance(0.6) else "") + " END",
                 [self.condition(columns, depth - 1), sub(typ), self.condition(columns, depth - 1), sub(typ), sub(typ)], typ)

    def nested(self, columns, typ, depth):
        """An ARRAY, MAP or ROW, made from parts."""
        sub = lambda t: self.expr(columns, t, max(depth - 1, 0))
        if typ in (INTS, STRS):
            of = INT if typ == INTS else STR
            n = self.r.randint(1, 3)
            inner = "[" + ", ".join("{%d}" % i for i in range(n)) + "]"
            return E("ARRAY" + inner, [sub(of) for _ in range(n)], typ, inner)
        if typ == MAP:
            return E("MAP['a', {0}, 'b', {1}]", [sub(INT), sub(INT)], MAP, "MAP {{'a': {0}, 'b': {1}}}")
        return E("CAST(ROW({0}, {1}) AS ROW<city VARCHAR, zip BIGINT>)", [sub(STR), sub(INT)], ROW, "{{'city': CAST({0} AS VARCHAR), 'zip': CAST({1} AS BIGINT)}}")

    def inside(self, columns, typ, depth):
        """A part of a nested value; None where there is none of the type."""
        sub = lambda t: self.expr(columns, t, depth - 1)
        if typ == INT:
            return self.r.choice([
                lambda: E("{0}[" + str(self.r.randint(1, 4)) + "]", [sub(INTS)], INT), lambda: E("{0}['" + self.r.choice("abz") + "']", [sub(MAP)], INT),
                lambda: E("CARDINALITY({0})", [sub(self.r.choice([INTS, STRS]))], INT, "LEN({0})"), lambda: E("({0}).zip", [sub(ROW)], INT),
            ])()
        if typ == STR:
            return self.r.choice([lambda: E("{0}[" + str(self.r.randint(1, 4)) + "]", [sub(STRS)], STR), lambda: E("({0}).city", [sub(ROW)], STR)])()
        return None

    def condition(self, columns, depth=1):
        r = self.r
        types = sorted({t for _, t in columns if t not in (SHOWN, BOOL) + NESTED}) or [INT]
        if self.chance(0.03):
            of = r.choice([INT, STR])
            return E("ARRAY_CONTAINS({0}, {1})", [self.expr(columns, INTS if of == INT else STRS, 1), self.literal(of)], BOOL, "LIST_CONTAINS({0}, {1})")
        if depth > 0 and self.chance(0.25):
            parts = [self.condition(columns, depth - 1) for _ in range(2)]
            return E(r.choice(["({0} AND {1})", "({0} OR {1})", "(NOT {0} OR {1})"]), parts, BOOL)
        t = r.choice(types)
        column = self.pick(columns, t)
        a = E(column[0], typ=t) if column and self.chance(0.7) else self.expr(columns, t, min(depth, 1))
        near = column and column[0].split(".")[-1]
        if self.chance(0.12):
            return E("({0} IS NOT NULL)" if self.chance(0.6) else "({0} IS NULL)", [a], BOOL)
        if self.chance(0.1):
            return E("({0} IS NOT DISTINCT FROM {1})", [a, self.expr(columns, t, 0)], BOOL)
        if self.chance(0.12):
            return E("({0} IN ({1}, {2}))" if self.chance(0.7) else "({0} NOT IN ({1}, {2}))", [a, self.literal(t, near), self.literal(t, near)], BOOL)
        if self.chance(0.03) and t == INT:  # a list long enough for a set
            return E("({0} " + r.choice(["IN", "NOT IN"]) + " (" + ", ".join("{%d}" % (i + 1) for i in range(9)) + "))", [a] + [self.literal(INT, near) for _ in range(9)], BOOL)
        if self.chance(0.03) and t in (INT, STR):
            return E("(" + " OR ".join("{0} = {%d}" % (i + 1) for i in range(6)) + ")", [a] + [self.literal(t, near) for _ in range(6)], BOOL)
        if self.chance(0.1) and t in (INT, TS):
            lo, hi = sorted([self.literal(t, near), self.literal(t, near)], key=lambda e: int(e.text) if t == INT else e.text)
            return E("({0} BETWEEN {1} AND {2})", [a, lo, hi], BOOL)
        if t == STR and self.chance(0.3):
            return E("({0} LIKE '" + r.choice(["%A%", "U_", "N%", "%", "_F_", "http%"]) + "')", [a], BOOL)
        b = self.literal(t, near) if self.chance(0.8) else self.expr(columns, t, 0)
        if b.text == a.text:
            b = self.literal(t, near)
        return E("({0} " + r.choice(["=", "<>", "<>", "<", "<=", ">", ">=", "<", ">"]) + " {1})", [a, b], BOOL)

    # ---- sources ----

    def table(self, name=None):
        return Table(name or self.r.choice(list(TABLES)), self.alias())

    def source(self, depth):
        if self.named and self.chance(0.5):
            return Named(*self.named, self.alias())
        if depth > 0 and self.chance(0.25):
            return Sub(self.limited(self.query(depth - 1), 0.15), self.alias("q"))
        if self.chance(0.3):
            return self.join()
        if self.chance(0.08):
            if self.chance(0.5):
                t = self.table("orders")
                return Unnest(t, [], self.alias("u"), self.r.choice([(f"{t.alias}.tags", STRS), (f"{t.alias}.sizes", INTS)]))
            t, typ = self.table("airports"), self.r.choice([INT, STR])
            return Unnest(t, [self.expr(t.columns(), typ, 1) for _ in range(self.r.randint(1, 3))], self.alias("u"))
        return self.table()

    def join(self):
        left, lc, right, rc = self.r.choice(JOINS)
        if self.chance(0.3):
            left, lc, right, rc = right, rc, left, lc
        a, b = self.table(left), self.table(right)
        big = {left, right} == {"flights"}
        on = [E(f"{a.alias}.{lc} = {b.alias}.{rc}", typ=BOOL)]
        if big or self.chance(0.15):  # not too many pairs
            common = sorted({n for n, t in TABLES[left] if (n, t) in TABLES[right]} - {lc})
            for n in common[:2] if big else common[:1]:
                on.append(E(f"{a.alias}.{n} {'IS NOT DISTINCT FROM' if self.chance(0.3) else '='} {b.alias}.{n}", typ=BOOL))
        kind = self.r.choice(["INNER", "INNER", "LEFT", "RIGHT", "FULL"])
        if self.chance(0.3) and kind != "FULL":  # DuckDB has no FULL JOIN with other conditions
            on.append(self.condition(a.columns() + b.columns(), 1))
        j = Join(kind, a, b, on)
        if lc == rc and not big and self.chance(0.4):
            same = [n for n, t in TABLES[left] if (n, t) in TABLES[right]]
            using = [(n, t) for n, t in TABLES[left] if n in same] if self.chance(0.5) else [(lc, dict(TABLES[left])[lc])]
            j = Join(kind, a, b, [], using, natural=len(using) == len(same) and self.chance(0.4))
        for _ in range(self.r.choice([0, 0, 0, 0, 1, 1, 2])):  # several, each of any kind, with conditions
            c = self.table("airports" if self.chance(0.7) else "planes")
            key = self.pick(j.columns(), STR)
            on = [E(f"{key[0]} = {c.alias}.{'faa' if c.name == 'airports' else 'tailnum'}", typ=BOOL)]
            kind = self.r.choice(["LEFT", "INNER", "RIGHT", "FULL"])
            if self.chance(0.3) and kind != "FULL":
                on.append(self.condition(j.columns() + c.columns(), 1))
            j = Join(kind, j, c, on)
        return j

    # ---- subqueries in conditions ----

    def subquery_condition(self, columns):
        t = self.table()
        inner = t.columns()
        typ = self.r.choice([INT, STR])
        a, b = self.pick(columns, typ), self.pick(inner, typ)
        if not a or not b:
            return self.condition(columns)
        q = Select([(E(b[0], typ=typ), "x")], t)
        if self.chance(0.7):
            q.where.append(self.condition(inner, 1))
        if self.chance(0.4):
            more, less = self.pick(inner, INT), self.pick(columns, INT)
            if self.chance(0.3) and more and less:
                q.where.append(E(f"{more[0]} = {less[0]}", typ=BOOL))
            if self.chance(0.2):
                q.items = [(E(f"COALESCE({b[0]}, " + ("0" if typ == INT else "''") + ")", typ=typ), "x")]
                return E("COALESCE({0}, " + ("1" if typ == INT else "'A'") + ") NOT IN ({1})", [E(a[0], typ=typ), q], BOOL)
            return E("{0} IN ({1})", [E(a[0], typ=typ), q], BOOL)
        if self.chance(0.5):
            q.where.append(E(f"{b[0]} = {a[0]}", typ=BOOL))
            return E("EXISTS ({0})" if self.chance(0.5) else "NOT EXISTS ({0})", [q], BOOL)
        n, outer = self.pick(inner, INT), self.pick(columns, INT)
        if not n or not outer:
            return self.condition(columns)
        fn = self.r.choice(["MAX", "MIN", "COUNT", "SUM"])
        q.items = [(E(f"{fn}({n[0]})", typ=INT), "x")]
        if self.chance(0.6):
            q.where.append(E(f"{b[0]} = {a[0]}", typ=BOOL))
        return E("({0} " + self.r.choice(["<", ">", "=", "<>"]) + " ({1}))", [E(outer[0], typ=INT), q], BOOL)

    def scalar(self, columns):
        """A value from another table: an aggregate, alone or tied by an equality."""
        t = self.table()
        n, a, b = self.pick(t.columns(), INT), self.pick(columns, STR), self.pick(t.columns(), STR)
        q = Select([(E(self.r.choice(["MAX", "MIN", "COUNT", "SUM"]) + f"({n[0]})", typ=INT), "x")], t)
        if a and b and self.chance(0.7):
            q.where.append(E(f"{a[0]} = {b[0]}", typ=BOOL))
        if self.chance(0.3):
            q.where.append(self.condition(t.columns(), 1))
        return E("({0})", [q], INT)

    # ---- selects ----

    def aggregate(self, columns):
        r = self.r
        f = " FILTER (WHERE {1})" if self.chance(0.2) else ""
        c = [self.condition(columns, 1)] if f else []
        kind = r.choice(["count*", "count", "distinct", "sum", "minmax", "minmax", "avg", "sumdbl", "sumdec", "avgdec", "mixed", "text", "edge", "percentile"])
        if kind == "text":  # ties are in the order of the values
            x = self.expr(columns, STR, 1)
            if self.chance(0.3):
                return E("STRING_AGG(DISTINCT {0}, '/')" + f, [x] + c, STR, duck="STRING_AGG(DISTINCT {0}, '/' ORDER BY {0})" + f)
            by, down = self.expr(columns, INT, 1), self.chance(0.5)
            order = " DESC NULLS FIRST" if down else " ASC NULLS LAST"
            f = f.replace("{1}", "{2}")
            return E("STRING_AGG({0}, '/' ORDER BY {1}" + order + ")" + f, [x, by] + c, STR, duck="STRING_AGG({0}, '/' ORDER BY {1}" + order + ", {0})" + f)
        if kind == "edge":
            t, f = r.choice([INT, STR, TS]), f.replace("{1}", "{2}")
            args = [self.expr(columns, t, 1), self.expr(columns, INT, 1)] + c
            name = r.choice(["FIRST", "LAST"])
            return E(name + "_VALUE({0} ORDER BY {1})" + f, args, t, duck=name + "({0} ORDER BY {1} NULLS LAST, {0} NULLS LAST)" + f)
        if kind == "percentile":
            x, part = [self.expr(columns, INT, 1)] + c, r.choice(["0", "0.25", "0.5", "0.9"])
            if self.chance(0.5):
                return E("PERCENTILE_CONT(" + part + ") WITHIN GROUP (ORDER BY {0})" + f, x, SHOWN, duck="QUANTILE_CONT({0}, " + part + ")" + f)
            return E("MEDIAN({0})" + f, x, SHOWN)
        if kind == "mixed":  # a value of several aggregates
            return E("({0} " + r.choice(["+", "-"]) + " {1})", [E("SUM({0})", [self.expr(columns, INT, 1)], INT), E("COUNT({0})", [self.expr(columns, STR, 0)], INT)], INT)
        if kind == "avgdec":
            return E("AVG({0})" + f, [E("CAST({0} AS DOUBLE)", [self.expr(columns, DEC, 1)], DBL)] + c, SHOWN)
        if kind == "count*":
            return E("COUNT(*)" + f.replace("{1}", "{0}"), c, INT)
        if kind in ("count", "distinct"):
            t = r.choice([INT, STR])
            return E(("COUNT({0})" if kind == "count" else "COUNT(DISTINCT {0})") + f, [self.expr(columns, t, 1)] + c, INT)
        if kind == "sum":
            return E(("SUM({0})" if self.chance(0.8) else "SUM(DISTINCT {0})") + f, [self.expr(columns, INT, 1)] + c, INT)
        if kind == "minmax":
            t = r.choice([INT, STR, TS, DEC, DATE, TIME])
            return E(r.choice(["MIN", "MAX"]) + "({0})" + f, [self.expr(columns, t, 1)] + c, t)
        if kind == "avg":
            return E("AVG({0})" + f, [self.expr(columns, INT, 1)] + c, SHOWN)
        if kind == "sumdbl":
            return E("SUM({0})" + f, [self.expr(columns, DBL, 1)] + c, SHOWN)
        # beside a value of more digits behind the point DuckDB would round a sum's DECIMAL(38, s) to its own s
        return E("SUM({0})" + f, [self.expr(columns, DEC, 1)] + c, DEC, duck="CAST(SUM({0})" + f + " AS DECIMAL(38, 6))")

    def where(self, q, columns):
        for _ in range(self.r.choice([0, 0, 1, 1, 2])):
            q.where.append(self.condition(columns, 2))
        if self.chance(0.15):
            q.where.append(self.subquery_condition(columns))

    def plain(self, depth):
        src = self.source(depth)
        columns = src.columns()
        q = Select([], src)
        types = sorted({t for _, t in columns})
        for _ in range(self.r.randint(1, 4)):
            t = self.r.choice([x for x in types if x != SHOWN] or [INT])
            q.items.append((self.expr(columns, t, 2), self.alias("c")))
        if self.chance(0.1):
            q.items.append((self.scalar(columns), self.alias("c")))
        self.where(q, columns)
        q.distinct = self.chance(0.2)
        return q

    def grouped(self, depth):
        src = self.source(depth)
        columns = src.columns()
        q = Select([], src)
        for _ in range(self.r.choice([0, 1, 1, 2, 2, 3])):
            t = self.r.choice([x for x in sorted({t for _, t in columns}) if x not in (SHOWN, DBL) + NESTED] or [INT])
            q.group.append(self.expr(columns, t, 1))
        q.group = [g for g in q.group if "{" in g.text or "." in g.text] or []  # a number would be a position
        if len(q.group) > 1 and self.chance(0.2):
            n = range(len(q.group))
            q.grouping = self.r.choice(["ROLLUP", "CUBE", [[i for i in n if self.chance(0.5)] for _ in range(self.r.randint(2, 3))]])
            if isinstance(q.grouping, list):
                q.grouping.append(list(n))
        q.items = [(copy.deepcopy(g), self.alias("k")) for g in q.group]
        q.items += [(self.aggregate(columns), self.alias("a")) for _ in range(self.r.randint(1, 3))]
        self.where(q, columns)
        if self.chance(0.25):
            q.having.append(E("{0} > " + str(self.r.choice([0, 1, 1, 5])), [E("COUNT(*)", typ=INT) if self.chance(0.7) else E("MAX({0})", [self.expr(columns, INT, 0)], INT)], BOOL))
        return q

    def direction(self):
        return self.r.choice(["ASC", "DESC"]) + " " + self.r.choice(["NULLS FIRST", "NULLS LAST"])

    def top_n(self, depth):
        """Rows of a partition up to a rank: ROW_NUMBER with a total order, RANK and DENSE_RANK with any."""
        src = self.source(depth)
        columns = [c for c in src.columns() if c[1] != SHOWN and c[1] not in NESTED and "." in c[0]]
        if not columns:
            return self.plain(depth)
        self.r.shuffle(columns)
        fn = self.r.choice(["ROW_NUMBER", "RANK", "DENSE_RANK"])
        shown = columns[:self.r.randint(1, 4)]
        inner = Select([(E(n, typ=t), self.alias("c")) for n, t in shown], src)
        self.where(inner, src.columns())
        inner.distinct = False
        base = Sub(inner, self.alias("q"))
        cols = base.columns()
        part = cols[:1] if self.chance(0.8) and len(cols) > 1 else []
        order = cols if fn == "ROW_NUMBER" else cols[-1:]
        text = f"{fn}() OVER (" + (f"PARTITION BY {part[0][0]} " if part else "") + "ORDER BY " + ", ".join(f"{n} {self.direction()}" for n, _ in order) + ")"
        ranked = Select([(E(n, typ=t), self.alias("c")) for n, t in cols] + [(E(text, typ=INT), "rn")], base)
        if fn == "ROW_NUMBER":
            ranked_source = Sub(ranked, self.alias("q"))
        else:
            ranked_source = Sub(ranked, self.alias("q"))
        outer = ranked_source.columns()
        q = Select([(E(n, typ=t), self.alias("c")) for n, t in outer if self.chance(0.9)] or [(E(outer[0][0], typ=outer[0][1]), self.alias("c"))], ranked_source)
        rn = f"{ranked_source.alias}.rn"
        q.where.append(E(self.r.choice([f"{rn} <= {self.r.choice([1, 2, 5])}", f"{rn} = 1", f"{rn} < 4", f"{rn} BETWEEN 2 AND 3"]), typ=BOOL))
        if self.chance(0.15):
            q.where.append(self.condition([c for c in outer if not c[0].endswith(".rn")], 1))
        return q

    def set_op(self, depth):
        typ = [self.r.choice([INT, STR, TS]) for _ in range(self.r.randint(1, 2))]
        sides, tables, first = [], ["flights", "bids"], self.r.choice(["flights", "bids"])
        columns = [self.pick(TABLES[first], t) for t in typ]
        for side in range(2):
            same = side == 0 or self.chance(0.75)
            src = self.table(first if same else self.r.choice(tables))
            q = Select([(E(f"{src.alias}.{c[0]}", typ=t) if same and self.chance(0.8) else self.expr(src.columns(), t, 1), f"c{i}")
                        for i, (t, c) in enumerate(zip(typ, columns))], src)
            self.where(q, src.columns())
            sides.append(q)
        ops = ["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"]
        out = SetOp(self.r.choice(ops), *sides)
        if self.chance(0.25):
            src = self.table(first)
            third = Select([(E(f"{src.alias}.{c[0]}", typ=t), f"c{i}") for i, (t, c) in enumerate(zip(typ, columns))], src)
            self.where(third, src.columns())
            out = SetOp(self.r.choice(ops), out, third) if self.chance(0.5) else SetOp(self.r.choice(ops), third, out)
        return out

    def query(self, depth):
        return self.r.choices([self.plain, self.grouped, self.top_n, self.set_op], [4, 5, 2, 1.5])[0](depth)

    def root(self):
        if self.chance(0.08):
            first = self.query(1)
            self.named = (self.alias("w"), first.columns())
            body = self.query(2)
            name, self.named = self.named[0], None
            return With(name, first, body)
        return self.limited(self.query(2), 0.3)

    def limited(self, q, chance):
        """The first rows of a query in a total order."""
        if not self.chance(chance) or not isinstance(q, (Select, SetOp)) or any(t == SHOWN or t in NESTED for _, t in q.columns()):
            return q
        base = Sub(q, self.alias("q"))
        out = Select([(E(n, typ=t), self.alias("c")) for n, t in base.columns()], base)
        out.order = [(E(n), self.direction()) for _, n in out.items]
        self.r.shuffle(out.order)
        out.limit = self.r.choice([0, 1, 5, 5, 20, 20, 100, 100])
        out.offset = self.r.choice([None, None, 1, 10])
        return out


# ---- smaller queries ----

def _lists(node):
    """Lists an element of which may go, each with its least length."""
    if isinstance(node, Select):
        yield node.where, 0
        yield node.having, 0
        if node.group and len(node.items) > len(node.group):
            yield node.items, len(node.group) + 1 if len(node.items) > len(node.group) + 1 else len(node.items)
        elif not node.group:
            yield node.items, 1
        yield node.group, 0
    elif isinstance(node, Join) and node.on:
        yield node.on, 1


def _nodes(node, seen):
    if id(node) in seen:
        return
    seen.add(id(node))
    yield node
    for child in vars(node).values():
        for c in child if isinstance(child, list) else [child]:
            c = c[0] if isinstance(c, tuple) else c
            if isinstance(c, (E, Table, Sub, Join, Unnest, Select, SetOp, With, Named)):
                yield from _nodes(c, seen)


def smaller(q):
    """Queries with one thing less. Not all are valid: the caller asks DuckDB."""
    if isinstance(q, SetOp):
        yield q.left
        yield q.right
    if isinstance(q, With):
        yield q.query
        yield q.body
    count = len(list(_nodes(q, set())))
    for i in range(count):
        def at(change):
            c = copy.deepcopy(q)
            return c if change(list(_nodes(c, set()))[i]) else None
        node = list(_nodes(q, set()))[i]
        if isinstance(node, Sub) and isinstance(node.query, (Select, SetOp)) and node is not q:
            yield copy.deepcopy(node.query)
        for k, (values, least) in enumerate(_lists(node)):
            for j in reversed(range(len(values))):
                if len(values) > least:
                    yield at(lambda n, k=k, j=j: [list(_lists(n))[k][0].pop(j)] is not None)
        if isinstance(node, Select):
            for field, value in (("distinct", False), ("order", []), ("limit", None), ("offset", None), ("grouping", None)):
                if getattr(node, field) and not (field == "order" and (node.limit is not None or node.offset)):
                    yield at(lambda n, field=field, value=value: setattr(n, field, value) or True)
            if isinstance(node.source, Unnest):
                yield at(lambda n: setattr(n, "source", n.source.left) or True)
            if isinstance(node.source, Join):
                yield at(lambda n: setattr(n, "source", n.source.left) or True)
                yield at(lambda n: setattr(n, "source", n.source.right) or True)
        if isinstance(node, E):
            for k, a in enumerate(node.args):
                if isinstance(a, E) and a.typ == node.typ:
                    def lift(n, k=k):
                        n.__dict__ = dict(n.args[k].__dict__)
                        return True
                    yield at(lift)
