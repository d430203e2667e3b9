/* Functions group by group: constants through the same kernels as columns. */
#include "expr/sample_int.h"

#include "os/fs.h"

#define CHECK(s, zone, ...)                                                                                            \
    do {                                                                                                               \
        static const sample_case cases_[] = {__VA_ARGS__};                                                             \
        sample_check((s), cases_, CK_ARRAY_COUNT(cases_), (zone));                                                     \
    } while (0)

static void arithmetic(void **state) {
    CHECK(*state, "UTC", {"(/ 7 2)", "3"}, {"(/ -7 2)", "-3"}, {"(% -7 2)", "-1"}, {"(% 7 -2)", "1"},
          {"(/ 7 -1)", "-7"}, {"(% 7 -1)", "0"},
          {"(+ 2147483647 1)", "error: 2147483647 + 1 is out of range for INTEGER"},
          {"(+ 2147483647 (cast BIGINT 1))", "2147483648"},
          {"(/ (cast TINYINT -128) (cast TINYINT -1))", "error: -128 / -1 is out of range for TINYINT"},
          {"(% 1 0)", "error: division by zero in 1 % 0"}, {"(/ 1.5e0 0)", "error: division by zero in 1.5e0 / 0.0e0"},
          {"(/ 1e0 4)", "0.25"}, {"(% 5.5e0 2)", "1.5"}, {"(- 1.10 0.1)", "1.00"}, {"(* 1.5 1.5)", "2.25"},
          {"(/ 1.0 3)", "0.333333333333"}, {"(/ 10 4.0)", "2.500000"}, {"(% 7.5 2)", "1.5"}, {"(neg 5)", "-5"},
          {"(neg 2.50)", "-2.50"}, {"(+ 1 null)", "NULL"}, {"(+ '5' 1)", "6"},
          {"(/ 1.0 0)", "error: division by zero in 1.0 / 0"},
          {"(* 9999999999999999999999999999999999999.0 10.0)",
           "error: 9999999999999999999999999999999999999.0 * 10.0 is out of range for DECIMAL(38,2)"},
          {"(abs -5)", "5"}, {"(abs -2.5)", "2.5"}, {"(sign -3)", "-1"}, {"(sign 0.0)", "0"}, {"(floor -1.5)", "-2"},
          {"(ceil -1.5)", "-1"}, {"(floor 1.5e0)", "1.0"}, {"(round 2.345 2)", "2.35"}, {"(round -2.5)", "-3"},
          {"(round 2.5e0)", "3.0"}, {"(round 2.675e0 2)", "2.68"}, {"(round 1234 -2)", "1200"},
          {"(round 1250 -2)", "1300"}, {"(round 1234.5 -2)", "1200"}, {"(truncate -2.349 2)", "-2.34"},
          {"(truncate 1299 -2)", "1200"}, {"(power 2 10)", "1024.0"}, {"(sqrt 2.25)", "1.5"},
          {"(sqrt -1)", "error: -1.0 is not in the domain of sqrt(-1.0e0)"},
          {"(ln 0)", "error: 0.0 is not in the domain of ln(0.0e0)"}, {"(log 2 8)", "3.0"}, {"(log 1000)", "3.0"},
          {"(bitand 12 10)", "8"}, {"(shiftleft 1 64)", "0"}, {"(shiftright -8 70)", "-1"}, {"(gcd 12 -18)", "6"},
          {"(gcd 0 -9223372036854775808)", "error: gcd(0, -9223372036854775808) is out of range for BIGINT"},
          {"(gcd -9223372036854775808 -4)", "4"}, {"(mod 17 5)", "2"}, {"(greatest 1 2.5 null)", "2.5"},
          {"(least 'b' 'a')", "a"});
}

static void casts(void **state) {
    CHECK(*state, "UTC", {"(cast INTEGER 2.5)", "3"}, {"(cast INTEGER -2.5)", "-3"}, {"(cast INTEGER 2.5e0)", "2"},
          {"(cast INTEGER 3.5e0)", "4"}, {"(cast BIGINT ' 42 ')", "42"},
          {"(cast TINYINT '300')", "error: '300' is out of range for TINYINT in cast('300' AS TINYINT)"},
          {"(cast BIGINT '1.5')", "error: '1.5' is not a BIGINT in cast('1.5' AS BIGINT)"},
          {"(cast BIGINT '99999999999999999999')",
           "error: '99999999999999999999' is out of range for BIGINT in cast('99999999999999999999' AS BIGINT)"},
          {"(cast BIGINT 1e30)", "error: 1e30 is out of range for BIGINT in cast(1e30 AS BIGINT)"},
          {"(cast DECIMAL(5,2) '123.456')", "123.46"},
          {"(cast DECIMAL(4,2) '123.456')",
           "error: '123.456' is out of range for DECIMAL(4,2) in cast('123.456' AS DECIMAL(4,2))"},
          {"(cast DECIMAL(3,2) 2.675e0)", "2.68"}, {"(cast DECIMAL(10,3) 5)", "5.000"},
          {"(cast DECIMAL(2,1) 12)", "error: 12 is out of range for DECIMAL(2,1) in cast(12 AS DECIMAL(2,1))"},
          {"(cast DOUBLE 0.1)", "0.1"}, {"(cast REAL 0.1)", "0.1"}, {"(cast DOUBLE 'NaN')", "NaN"},
          {"(cast REAL 1e300)", "error: 1e300 is out of range for REAL in cast(1e300 AS REAL)"},
          {"(cast BOOLEAN 'yes')", "true"}, {"(cast BOOLEAN 0)", "false"}, {"(cast INTEGER true)", "1"},
          {"(cast VARCHAR true)", "true"}, {"(cast VARCHAR 1.50)", "1.50"}, {"(cast VARCHAR 1e21)", "1e21"},
          {"(cast VARCHAR(3) 'größe')", "grö"}, {"(cast VARCHAR(2) 1234)", "12"},
          {"(cast VARCHAR (cast BYTES 'abc'))", "abc"},
          {"(cast VARCHAR (unhex 'ff'))", "error: /w== is not a VARCHAR in cast(unhex('ff') AS VARCHAR)"},
          {"(try_cast BIGINT 'x')", "NULL"}, {"(try_cast BIGINT '7')", "7"}, {"(try_cast TINYINT 300)", "NULL"},
          {"(try_cast VARCHAR (/ 1 0))", "error: division by zero in 1 / 0"},
          {"(cast DATE '2024-02-29')", "2024-02-29"}, {"(cast DATE '2024-02-29 23:59:59')", "2024-02-29"},
          {"(cast DATE '2023-02-29')", "error: '2023-02-29' is not a DATE in cast('2023-02-29' AS DATE)"},
          {"(cast TIME(6) '12:34:56.789')", "12:34:56.789"}, {"(cast TIME(0) '12:34:56.789')", "12:34:56"},
          {"(cast TIMESTAMP(3) '2024-02-29T01:02:03.456789')", "2024-02-29 01:02:03.456"},
          {"(cast TIMESTAMP(0) (cast TIMESTAMP(3) '1969-12-31 23:59:59.5'))", "1969-12-31 23:59:59"},
          {"(cast DATE (cast TIMESTAMP(3) '1969-12-31 23:59:59.5'))", "1969-12-31"},
          {"(cast TIMESTAMP(3) (cast DATE '2024-02-29'))", "2024-02-29 00:00:00"},
          {"(cast TIME(6) (cast TIMESTAMP(3) '2024-02-29 01:02:03.5'))", "01:02:03.500"},
          {"(cast TIMESTAMP_LTZ(3) '2024-02-29 01:02:03+02:00')", "2024-02-28 23:02:03Z"},
          {"(cast (INTERVAL DAY TO SECOND) '1 day 2 hours')", "1 02:00:00"},
          {"(cast (INTERVAL DAY TO SECOND) '-02:30')", "-0 02:30:00"},
          {"(cast (INTERVAL YEAR TO MONTH) '1-02')", "1-02"}, {"(cast (INTERVAL YEAR TO MONTH) '2 years')", "2-00"});
}

static void strings(void **state) {
    CHECK(*state, "UTC", {"(char_length 'größe')", "5"}, {"(length '')", "0"}, {"(octet_length 'größe')", "7"},
          {"(lower 'ÄPFEL und Birnen GANZ LANG')", "äpfel und birnen ganz lang"}, {"(upper 'straße é')", "STRAßE É"},
          {"(lower 'APPLE')", "apple"}, {"(upper 'a text of more than twelve')", "A TEXT OF MORE THAN TWELVE"},
          {"(initcap 'hello wORLD-two éa')", "Hello World-Two Éa"}, {"(substring 'flights' 3 4)", "ight"},
          {"(substring 'flights' 3)", "ights"}, {"(substring 'abc' -1 3)", "a"}, {"(substring 'abc' 0)", "abc"},
          {"(substring 'äbcdé' 2 3)", "bcd"}, {"(substring 'äbcdé' 5)", "é"}, {"(substring 'abc' 9)", ""},
          {"(substring 'abc' 1 -1)", "error: 'abc', 1, -1 are not in the domain of substring('abc', 1, -1)"},
          {"(substring 'a long text that is not inline' 3 20)", "long text that is no"}, {"(left 'abcdef' 2)", "ab"},
          {"(left 'abcdef' -2)", "abcd"}, {"(right 'äöü' 2)", "öü"}, {"(right 'abc' -5)", ""},
          {"(trim '  a b  ')", "a b"}, {"(trim 'xyxabcyx' 'xy')", "abc"}, {"(ltrim 'éeéa' 'é')", "eéa"},
          {"(rtrim 'aéé' 'é')", "a"}, {"(position 'gh' 'flights')", "4"}, {"(position 'ß' 'größe')", "4"},
          {"(position 'x' 'abc')", "0"}, {"(position '' 'abc')", "1"}, {"(starts_with 'flights' 'fl')", "true"},
          {"(ends_with 'flights' 'hs')", "false"}, {"(contains 'flights' 'igh')", "true"}, {"(|| 'N' 14228)", "N14228"},
          {"(|| 'a' null)", "NULL"}, {"(concat 'a' null 1)", "a1"}, {"(concat null)", ""},
          {"(concat_ws '-' 'a' null 'b')", "a-b"}, {"(concat_ws null 'a')", "NULL"},
          {"(replace 'banana' 'an' 'o')", "booa"}, {"(replace 'aaa' 'a' '')", ""}, {"(replace 'abc' '' 'x')", "abc"},
          {"(replace 'a text that is long enough' 't' 'TT')", "a TTexTT TThaTT is long enough"},
          {"(overlay 'abcdef' 'XY' 3 3)", "abXYf"}, {"(overlay 'äbc' 'X' 1)", "Xbc"}, {"(overlay 'abc' 'X' 9)", "abcX"},
          {"(lpad '7' 3 '0')", "007"}, {"(lpad 'abc' 2)", "ab"}, {"(rpad '7' 4 'xy')", "7xyx"},
          {"(lpad 'ä' 3 'öü')", "öüä"}, {"(repeat 'ab' 3)", "ababab"}, {"(repeat 'x' -1)", ""},
          {"(repeat 'x' 100000000)", "error: a text above 64 MiB in repeat('x', 100000000)"},
          {"(reverse 'été1')", "1été"}, {"(split_index 'a/b//c' '/' 2)", ""}, {"(split_index 'a/b' '/' 2)", "NULL"},
          {"(split_index 'https://www.a.org/path/to/it' '/' 3)", "path"}, {"(split_index 'a' '/' -1)", "NULL"},
          {"(split_index 'axxbxxc' 'xx' 1)", "b"}, {"(split_part 'a,b,c' ',' 2)", "b"},
          {"(split_part 'a,b,c' ',' -1)", "c"}, {"(split_part 'a,b' ',' 5)", ""}, {"(ascii 'é')", "233"},
          {"(locate 'a' 'banana' 3)", "4"}, {"(locate 'a' 'banana' 7)", "0"}, {"(locate '' 'ab' 3)", "3"},
          {"(locate '' 'ab' 4)", "0"}, {"(locate 'é' 'aéé' 3)", "3"}, {"(instr 'banana' 'nan')", "3"},
          {"(strpos 'a' 'b')", "0"}, {"(url_encode 'a b&ü')", "a%20b%26%C3%BC"}, {"(url_decode 'a%20b+c')", "a b c"},
          {"(url_decode '%zz')", "error: '%zz' is not in the domain of url_decode('%zz')"},
          {"(url_decode '%ff')", "error: '%ff' is not in the domain of url_decode('%ff')"}, {"(chr 8364)", "€"},
          {"(chr -1)", "error: -1 is not in the domain of chr(-1)"}, {"(translate '12345' '143' 'ax')", "a2x5"},
          {"(translate 'äöü' 'äö' 'ao')", "aoü"}, {"(to_base64 'hello')", "aGVsbG8="},
          {"(from_base64 'aGVsbG8=')", "hello"},
          {"(from_base64 'a')", "error: 'a' is not in the domain of from_base64('a')"}, {"(hex 255)", "FF"},
          {"(hex 'hi')", "6869"}, {"(hex (unhex '00ff'))", "00FF"}, {"(crc32 'hello')", "907060870"},
          {"(fnv1a64 '')", "-3750763034362895579"}, {"(like 'a_c' 'a\\_c')", "true"},
          {"(ilike 'STRASSE É' '%é')", "true"}, {"(ilike 'ABC' 'a_C')", "true"});
}

static void regular_expressions(void **state) {
    CHECK(*state, "UTC", {"(regexp_extract 'x&channel_id=abc&y=1' '(&|^)channel_id=([^&]*)' 2)", "abc"},
          {"(regexp_extract 'nothing' '(&|^)channel_id=([^&]*)' 2)", "NULL"},
          {"(regexp_extract 'a12b' '[0-9]+')", "12"}, {"(regexp_extract 'ab' '(x)?ab' 1)", "NULL"},
          {"(regexp_extract 'größe' 'ö.')", "öß"},
          {"(regexp_extract 'a' '(a)' 2)", "error: the regular expression has 1 groups, there is no group 2"},
          {"(regexp_extract 'a' '(a')",
           "error: the regular expression '(a' is not valid: missing closing parenthesis at byte 2"},
          {"(regexp_replace '2024-02-29' '([0-9]+)-([0-9]+)' '\\2/\\1')", "02/2024-29"},
          {"(regexp_replace 'banana' 'a' 'o')", "bonana"},
          {"(regexp_replace 'banana' 'A' '<\\&>' 'gi')", "b<a>n<a>n<a>"}, {"(regexp_replace 'äb' '' '-' 'g')", "-ä-b-"},
          {"(regexp_like 'Flights' '^fl' 'i')", "true"}, {"(regexp_like 'Flights' '^fl')", "false"},
          {"(~ 'flights' 'g.t')", "true"}, {"(~* 'FLIGHTS' 'g.t')", "true"}, {"(similar_to 'abc' '%(b|d)_')", "true"},
          {"(similar_to 'a.c' 'a.c')", "true"}, {"(similar_to 'abc' 'a.c')", "false"},
          {"(regexp_count 'banana' 'an')", "2"}, {"(regexp_count 'äé' '')", "3"}, {"(regexp_instr 'é1' '[0-9]')", "2"},
          {"(regexp_instr 'a' 'b')", "0"}, {"(regexp_substr 'flight 714' '[0-9]+')", "714"},
          {"(regexp_like 'a' 'a' 'x')", "error: flags of a regular expression are g, i and c, not 'x'"},
          {"(regexp_like 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!' '^(a+)+$')",
           "error: 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!', '^(a+)+$': the match was given up after too many steps "
           "in "
           "regexp_like('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!', '^(a+)+$')"});
}

#define TS       "(lit TIMESTAMP(3) '2024-02-29 13:45:06.789')"
#define D        "(lit DATE '2024-02-29')"
#define SPAN(x)  "(cast (INTERVAL DAY TO SECOND) '" x "')"
#define YEARS(x) "(cast (INTERVAL YEAR TO MONTH) '" x "')"

static void parts_of_times(void **state) {
    CHECK(*state, "UTC", {"(extract 'year' " TS ")", "2024"}, {"(extract 'doy' " D ")", "60"},
          {"(extract 'dow' " D ")", "4"}, {"(extract 'isodow' (lit DATE '2024-03-03'))", "7"},
          {"(extract 'week' (lit DATE '2021-01-03'))", "53"}, {"(extract 'isoyear' (lit DATE '2021-01-03'))", "2020"},
          {"(extract 'quarter' " D ")", "1"}, {"(extract 'century' (lit DATE '2000-12-31'))", "20"},
          {"(extract 'epoch' " TS ")", "1709214306"}, {"(extract 'millisecond' " TS ")", "6789"},
          {"(extract 'second' " TS ")", "6"}, {"(extract 'hour' (lit TIMESTAMP(3) '1969-12-31 23:00:00'))", "23"},
          {"(extract 'fortnight' " D ")", "error: EXTRACT(unit FROM x) has no unit fortnight; there are MICROSECOND to "
                                          "MILLENNIUM, DOW, ISODOW, DOY, ISOYEAR and EPOCH"},
          {"(extract 'day' " SPAN("3 04:05:06") ")", "3"}, {"(extract 'hour' " SPAN("-3 04:05:06") ")", "-4"},
          {"(extract 'month' " YEARS("1-02") ")", "2"}, {"(year " TS ")", "2024"}, {"(dayofweek " TS ")", "5"},
          {"(hour " TS ")", "13"}, {"(minute " TS ")", "45"}, {"(second " TS ")", "6"}, {"(month '2024-02-29')", "2"},
          {"(hour (lit TIME(6) '23:10:00'))", "23"}, {"(hour " D ")", "0"},
          {"(year (lit TIME(6) '23:10:00'))", "error: YEAR(x) of TIME(6) does not exist"},
          {"(date_trunc 'month' " TS ")", "2024-02-01 00:00:00"}, {"(date_trunc 'week' " D ")", "2024-02-26"},
          {"(date_trunc 'century' " D ")", "2001-01-01"}, {"(floor_to " TS " 'hour')", "2024-02-29 13:00:00"},
          {"(ceil_to " TS " 'hour')", "2024-02-29 14:00:00"}, {"(ceil_to " D " 'month')", "2024-03-01"},
          {"(ceil_to (lit DATE '2024-03-01') 'month')", "2024-03-01"},
          {"(timestampadd 'month' 1 (lit DATE '2024-01-31'))", "2024-02-29"},
          {"(timestampadd 'hour' 1 " D ")", "2024-02-29 01:00:00"},
          {"(timestampadd 'day' -60 " TS ")", "2023-12-31 13:45:06.789"},
          {"(timestampdiff 'day' (lit DATE '2024-02-01') (lit DATE '2024-03-01'))", "29"},
          {"(timestampdiff 'month' (lit DATE '2024-01-31') (lit DATE '2024-02-29'))", "1"},
          {"(timestampdiff 'month' (lit DATE '2024-01-31') (lit DATE '2024-02-28'))", "0"},
          {"(timestampdiff 'month' (lit DATE '2014-02-28') (lit DATE '2013-06-30'))", "-8"},
          {"(timestampdiff 'year' (lit DATE '2024-02-29') (lit DATE '2025-02-28'))", "1"},
          {"(timestampdiff 'month' (lit DATE '2024-02-29') (lit DATE '2024-03-28'))", "0"},
          {"(timestampdiff 'month' (lit DATE '2024-02-29') (lit DATE '2023-01-01'))", "-13"},
          {"(timestampdiff 'second' " D " " TS ")", "49506"}, {"(last_day " TS ")", "2024-02-29"});
}

static void time_arithmetic(void **state) {
    CHECK(*state, "UTC", {"(+ " D " 1)", "2024-03-01"}, {"(- " D " (lit DATE '2024-02-01'))", "28"},
          {"(+ " D " " SPAN("1 day") ")", "2024-03-01"}, {"(+ " D " " SPAN("1 hour") ")", "2024-02-29 01:00:00"},
          {"(- " D " " YEARS("1 year") ")", "2023-02-28"},
          {"(+ " TS " " SPAN("1 second") ")", "2024-02-29 13:45:07.789"}, {"(- " TS " " D ")", "0 13:45:06.789"},
          {"(+ " D " (lit TIME(6) '10:00:00'))", "2024-02-29 10:00:00"},
          {"(+ (lit TIME(6) '23:30:00') " SPAN("1 hour") ")", "00:30:00"},
          {"(- (lit TIME(6) '01:00:00') (lit TIME(6) '23:00:00'))", "-0 22:00:00"},
          {"(* " SPAN("1 hour") " 2.5)", "0 02:30:00"}, {"(/ " SPAN("1 hour") " 2)", "0 00:30:00"},
          {"(* 2 " YEARS("1-02") ")", "2-04"}, {"(neg " YEARS("1-02") ")", "-1-02"},
          {"(+ (lit DATE '9999-12-31') 1)", "error: DATE '9999-12-31' + 1 is out of range for DATE"},
          {"(/ " SPAN("1 hour") " 0)", "error: division by zero in INTERVAL '1' HOUR / 0"});
}

static void times_as_text(void **state) {
    CHECK(*state, "UTC", {"(date_format " TS " 'yyyy-MM-dd')", "2024-02-29"}, {"(date_format " TS " 'HH:mm')", "13:45"},
          {"(date_format " TS " 'dd MMM yyyy, hh:mm a')", "29 Feb 2024, 01:45 PM"},
          {"(date_format " TS " 'EEEE, D ''of'' yy SSS')", "Thursday, 60 of 24 789"},
          {"(date_format '2024-02-29 01:02:03' 'H-m-s')", "1-2-3"},
          {"(date_format " TS " 'Q')", "error: a date pattern has no letter Q; text stands in quotes ('')"},
          {"(date_format " TS " 'yyyy''''-')", "2024'-"},
          {"(date_format " TS " '''a')", "error: a quote is open in the date pattern ''a'"},
          {"(to_timestamp '29.02.2024 13:45' 'dd.MM.yyyy HH:mm')", "2024-02-29 13:45:00"},
          {"(to_timestamp '20240229134506' 'yyyyMMddHHmmss')", "2024-02-29 13:45:06"},
          {"(to_timestamp '2024-02-29 13:45:06.789')", "2024-02-29 13:45:06.789"},
          {"(to_timestamp '29 Feb 24 1:05 pm' 'dd MMM yy h:mm a')", "2024-02-29 13:05:00"},
          {"(to_timestamp 'x' 'yyyy')", "error: 'x', 'yyyy' are not in the domain of to_timestamp('x', 'yyyy')"},
          {"(to_date '31/02/2024' 'dd/MM/yyyy')",
           "error: '31/02/2024', 'dd/MM/yyyy' are not in the domain of to_date('31/02/2024', 'dd/MM/yyyy')"},
          {"(to_date '29/02/2024' 'dd/MM/yyyy')", "2024-02-29"}, {"(to_timestamp 1.5)", "1970-01-01 00:00:01.500Z"},
          {"(to_timestamp_ltz 1709214306789 3)", "2024-02-29 13:45:06.789Z"},
          {"(to_timestamp_ltz 44 0)", "1970-01-01 00:00:44Z"},
          {"(to_timestamp_ltz 9223372036854775807)",
           "error: to_timestamp_ltz(9223372036854775807) is out of range for TIMESTAMP_LTZ(3)"},
          {"(to_timestamp_ltz 1 2)", "error: the precision of TO_TIMESTAMP_LTZ is 0 (seconds), 3 (milliseconds) or 6"},
          {"(from_unixtime 44)", "1970-01-01 00:00:44"}, {"(unix_timestamp '1970-01-01 00:01:00')", "60"},
          {"(unix_timestamp (to_timestamp_ltz 61000))", "61"}, {"(make_date 2024 2 29)", "2024-02-29"},
          {"(make_date 2023 2 29)", "error: 2023, 2, 29 are not in the domain of make_date(2023, 2, 29)"});
}

static void zones(void **state) {
    sample *s = *state;
    s->proc.fs = ck_fs_system();
    CHECK(s, "UTC", {"(at_time_zone (lit TIMESTAMP(0) '2024-07-01 12:00:00') 'Europe/Berlin')", "2024-07-01 10:00:00Z"},
          {"(at_time_zone (to_timestamp_ltz 0) 'Asia/Kolkata')", "1970-01-01 05:30:00"},
          {"(at_time_zone (to_timestamp_ltz 0) 'Nowhere/Land')",
           "error: no time zone 'Nowhere/Land' (zones are read from /usr/share/zoneinfo)"},
          {"(at_time_zone (to_timestamp_ltz 0) '../../etc/passwd')",
           "error: '../../etc/passwd' is not the name of a time zone"});
    CHECK(s, "America/New_York", {"(hour (to_timestamp_ltz 1720000000000))", "5"},
          {"(date_format (to_timestamp_ltz 1720000000000) 'yyyy-MM-dd HH:mm')", "2024-07-03 05:46"},
          {"(cast VARCHAR (to_timestamp_ltz 1720000000000))", "2024-07-03 05:46:40-04:00"},
          {"(cast TIMESTAMP(0) (to_timestamp_ltz 1700000000000))", "2023-11-14 17:13:20"},
          {"(cast TIMESTAMP_LTZ(0) '2024-03-10 02:30:00')", "2024-03-10 07:30:00Z"},
          {"(cast TIMESTAMP_LTZ(0) '2024-11-03 01:30:00')", "2024-11-03 05:30:00Z"},
          {"(date_trunc 'day' (to_timestamp_ltz 1720000000000))", "2024-07-03 04:00:00Z"},
          {"(+ (cast TIMESTAMP_LTZ(0) '2024-03-09 12:00:00') " YEARS("1 month") ")", "2024-04-09 16:00:00Z"},
          {"(timestampadd 'day' 1 (cast TIMESTAMP_LTZ(0) '2024-03-09 12:00:00'))", "2024-03-10 16:00:00Z"},
          {"(timestampadd 'hour' 24 (cast TIMESTAMP_LTZ(0) '2024-03-09 12:00:00'))", "2024-03-10 17:00:00Z"},
          {"(cast DATE (to_timestamp_ltz 0))", "1969-12-31"},
          {"(= (to_timestamp_ltz 0) '1969-12-31 19:00:00')", "true"});
}

static void json(void **state) {
    CHECK(*state, "UTC", {"(json_value '{\"a\":{\"b\":[7,8]}}' '$.a.b[1]')", "8"},
          {"(json_value '{\"a\":\"x\"}' '$.a')", "x"}, {"(json_value '{\"a\":1.5}' 'lax $.a')", "1.5"},
          {"(json_value '{\"a\":true}' '$[''a'']')", "true"}, {"(json_value '{\"a\":[1]}' '$.a')", "NULL"},
          {"(json_value '{\"a\":null}' '$.a')", "NULL"}, {"(json_value 'not json' '$.a')", "NULL"},
          {"(json_value '{}' '$.a')", "NULL"},
          {"(json_value '{}' 'strict $.a')",
           "error: '{}', 'strict $.a' are not in the domain of json_value('{}', 'strict $.a')"},
          {"(json_value '[{\"a\":1}]' '$.a')", "1"}, {"(json_value '5' '$[0]')", "5"},
          {"(json_value '[1,2,3]' '$[last]')", "3"},
          {"(json_value 'x' '.a')", "error: '.a' is not a JSON path like $.a.b[0] (byte 0)"},
          {"(json_query '{\"a\":[1, 2]}' '$.a')", "[1,2]"}, {"(json_query '{\"a\":1}' '$.a')", "NULL"},
          {"(json_exists '{\"a\":1}' '$.b')", "false"}, {"(json_exists '{\"a\":[1,2]}' '$.a[*]')", "true"},
          {"(is_json '[1]')", "true"}, {"(is_json '[1')", "false"},
          {"(json_object 'a' 1 'b' 'x' 'c' null)", "{\"a\":1,\"b\":\"x\",\"c\":null}"},
          {"(json_array 1 'x' 2.50 true null)", "[1,\"x\",2.50,true,null]"}, {"(json_string 'a\"b')", "\"a\\\"b\""},
          {"(json_string (array 1 2))", "[1,2]"});
}

static void nested(void **state) {
    CHECK(*state, "UTC", {"(array 1 2 3)", "[1,2,3]"}, {"(array 1 null 2.5)", "[1.0,null,2.5]"},
          {"(item (array 7 8) 2)", "8"}, {"(item (array 7 8) 3)", "NULL"}, {"(item (array 7 8) 0)", "NULL"},
          {"(map 'a' 1 'b' 2)", "{\"a\":1,\"b\":2}"}, {"(item (map 'a' 1 'b' 2) 'b')", "2"},
          {"(item (map 'a' 1) 'z')", "NULL"}, {"(map 'a' 1 'b' 2 'a' 3)", "{\"b\":2,\"a\":3}"},
          {"(item (map 1 1 1.0 2) 1)", "2"}, {"(row 1 'x')", "{\"EXPR$0\":1,\"EXPR$1\":\"x\"}"},
          {"(field (row 1 'x') 'EXPR$1')", "x"},
          {"(field (row 1) 'q')", "error: no field q in ROW<\"EXPR$0\" INTEGER NOT NULL>"},
          {"(cardinality (array 1 2))", "2"}, {"(array_contains (array 1 2) 2)", "true"},
          {"(array_position (array 5 6) 7)", "0"}, {"(array_join (array 1 null 2) '-')", "1-2"},
          {"(split 'a,b' ',')", "[\"a\",\"b\"]"}, {"(map_keys (map 'a' 1))", "[\"a\"]"},
          {"(map_values (map 'a' 1))", "[1]"}, {"(= (array 1 2) (array 1 2))", "true"},
          {"(if true (array 1) (array 2))", "[1]"}, {"(coalesce (null ARRAY<INTEGER>) (array 3))", "[3]"},
          {"(cast ARRAY<VARCHAR> (array 1 null 2))", "[\"1\",null,\"2\"]"},
          {"(cast ARRAY<BIGINT> (array '1' 'x'))",
           "error: [\"1\",\"x\"] is not an ARRAY<BIGINT> in cast(ARRAY['1', 'x'] AS ARRAY<BIGINT>)"},
          {"(try_cast ARRAY<BIGINT> (array '1' 'x'))", "NULL"},
          {"(cast (ROW<a BIGINT, b ARRAY<DOUBLE>>) (row '7' (array 1 2)))", "{\"a\":7,\"b\":[1.0,2.0]}"},
          {"(cast (MAP<VARCHAR, DOUBLE>) (map 'a' 1))", "{\"a\":1.0}"}, {"(cast VARCHAR (array 1 2))", "[1,2]"},
          {"(array_concat (array 1) (array 2 3.5))", "[1.0,2.0,3.5]"}, {"(array_append (array 1) null)", "[1,null]"},
          {"(array_append (array 1) 2.5)", "[1.0,2.5]"}, {"(array_prepend '0' (array 1))", "[0,1]"},
          {"(array_remove (array 1 2 1) 1)", "[2]"}, {"(array_distinct (array 2 1 null 2 null))", "[2,1,null]"},
          {"(array_reverse (array 1 2))", "[2,1]"}, {"(array_slice (array 1 2 3 4) 2 -2)", "[2,3]"},
          {"(array_slice (array 1 2) 3 5)", "[]"}, {"(array_max (array 3 7 null))", "7"},
          {"(array_min (array 'b' 'a'))", "a"}, {"(array_max (array null))", "NULL"},
          {"(array_concat (array 1) (null ARRAY<INTEGER>))", "NULL"},
          {"(map null 1)", "error: the keys of a MAP are not NULL; a key here may be (COALESCE gives it a value)"});
}

static void random_values(void **state) {
    CHECK(*state, "UTC", {"(char_length (uuid))", "36"}, {"(between (random) 0 1)", "true"}, {"(rand_integer 1)", "0"},
          {"(rand_integer 0)", "error: 0 is not in the domain of rand_integer(0)"});
}

/* Every entry of the table is complete, and its names are its own. */
static void table(void **state) {
    (void)state;
    for (size_t i = 0; i < ck_function_count(); i++) {
        const ck_function *f = ck_function_at(i);
        bool by_us_alone = (f->flags & CK_FN_INTERNAL) && !f->group; /* nothing that SQL writes */
        if (by_us_alone) continue;
        assert_non_null(f->group);
        assert_non_null(f->syntax);
        assert_non_null(f->summary);
        assert_non_null(f->example);
        assert_non_null(f->result);
        assert_true(f->bind || f->overload_count);
        assert_ptr_equal(ck_function_find(f->name), f);
        for (uint32_t k = 0; k < f->overload_count; k++) assert_non_null(f->overloads[k].impl);
    }
    assert_null(ck_function_at(ck_function_count()));
    assert_ptr_equal(ck_function_find("CHARACTER_LENGTH"), ck_function_find("char_length"));
    assert_true(ck_view_is(ck_function_suggest("regexp_extrat"), "regexp_extract"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SAMPLE_TEST(arithmetic),     SAMPLE_TEST(casts),
        SAMPLE_TEST(strings),        SAMPLE_TEST(regular_expressions),
        SAMPLE_TEST(parts_of_times), SAMPLE_TEST(time_arithmetic),
        SAMPLE_TEST(times_as_text),  SAMPLE_TEST(zones),
        SAMPLE_TEST(json),           SAMPLE_TEST(nested),
        SAMPLE_TEST(random_values),  SAMPLE_TEST(table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
