"""Reads and writes ORC with pyarrow (ORC C++), one thread, and says how much CPU time that took.

Started by `stoa bench orc`: a job as JSON per line of standard input, an answer as JSON per line of
standard output. CPU time is user and system time of the process; imports, sums and reading the rows
to write are outside of it.
"""

import json
import os
import sys
import time

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc
import pyarrow.parquet as pq

WEIGHTS = 1009


def read(path, columns):
    """The parts of a file: stripe after stripe, as nobody needs all of it at once."""
    file = orc.ORCFile(path)
    for stripe in range(file.nstripes):
        yield file.read_stripe(stripe, columns=columns)


def count_rows(path, columns):
    return sum(part.num_rows for part in read(path, columns))


def sums(table):
    weights = pa.array(range(1, WEIGHTS + 1), pa.int64())
    weights = pa.chunked_array([weights] * (table.num_rows // WEIGHTS + 1)).slice(0, table.num_rows)
    return {
        "rows": table.num_rows,
        "columns": {name: column_sums(table[name], weights) for name in table.column_names},
    }


def column_sums(column, weights):
    counts = {}
    values = column
    if pa.types.is_string(column.type):
        counted = pc.value_counts(column.combine_chunks())
        counts = {item["values"].as_py(): item["counts"].as_py() for item in counted}
        values = pc.binary_length(column)
    elif pa.types.is_date(column.type):
        values = column.cast(pa.int32())
    values = pc.fill_null(values.cast(pa.int64()), 0)
    total = lambda numbers: pc.sum(numbers).as_py() or 0
    return {
        "nulls": column.null_count,
        "sum": total(values),
        "weighted": total(pc.multiply(values, weights)),
        "counts": counts,
    }


def answer(table, report):
    """The lines of a report: day (days since 1970), impressions, clicks, cost."""
    day = table["day"].cast(pa.int32())
    wanted = pc.and_(
        pc.equal(table["account_id"], report["account_id"]),
        pc.and_(
            pc.greater_equal(day, report["first_day"]), pc.less_equal(day, report["last_day"])
        ),
    )
    metrics = ["impressions", "clicks", "cost"]
    rows = table.set_column(1, "day", day).filter(wanted)
    lines = rows.group_by("day").aggregate([(name, "sum") for name in metrics]).sort_by("day")
    return [
        [line["day"]] + [line[name + "_sum"] for name in metrics] for line in lines.to_pylist()
    ]


class Worker:
    def __init__(self):
        self.source = None
        self.table = None

    def do(self, job):
        return getattr(self, job["do"])(job)

    def hello(self, job):
        return {"version": pa.__version__}

    def read(self, job):
        begin = time.process_time()
        rows = count_rows(job["file"], job["columns"])
        result = {"cpu": time.process_time() - begin, "rows": rows}
        if job["check"]:
            table = pa.Table.from_batches(read(job["file"], job["columns"]))
            if job["reports"]:
                result["reports"] = [answer(table, report) for report in job["reports"]]
            else:
                result["sums"] = sums(table)
        return result

    def write(self, job):
        if self.source != job["parquet"]:
            self.source, self.table = job["parquet"], pq.read_table(job["parquet"])
        begin = time.process_time()
        orc.write_table(
            self.table,
            job["output"],
            compression="zstd",
            # As ORC Java has it; pyarrow's own default writes no dictionaries.
            dictionary_key_size_threshold=0.8,
        )
        return {"cpu": time.process_time() - begin, "bytes": os.path.getsize(job["output"])}

    def forget(self, job):
        self.source = self.table = None
        return {}


def main():
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    worker = Worker()
    for line in sys.stdin:
        try:
            result = worker.do(json.loads(line))
        except Exception as error:
            result = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(result), flush=True)


main()
