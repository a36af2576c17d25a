"""Reads a task file with pyarrow and prints what it holds as JSON.

    python read_tasks.py FILE.parquet
"""
import json
import sys

import pyarrow.parquet as pq

table = pq.read_table(sys.argv[1])
json.dump(
    {
        "columns": {f.name: str(f.type) for f in table.schema},
        "schema_version": (table.schema.metadata or {}).get(b"memopd.task_schema", b"").decode(),
        "rows": table.to_pylist(),
    },
    sys.stdout,
)
