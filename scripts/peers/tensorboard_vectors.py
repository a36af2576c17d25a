"""Writes train/events/testdata/tensorboard.tfevents with TensorBoard's own messages and record writer.

    pip install tensorboard; python scripts/peers/tensorboard_vectors.py train/events/testdata
"""

import pathlib
import sys

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

BEGIN = 1_700_000_000.25  # seconds; the events follow by a second each
SERIES = [
    (8, {"losses/policy_loss": -0.0125, "charts/episodic_return": 0.5}),
    (9, {"losses/policy_loss": 1e-7, "actor/pg_clipfrac": 0.0}),
    (300, {"perf/total_num_tokens": 123456.0}),
]


def events():
    yield Event(wall_time=BEGIN, file_version="brain.Event:2")
    yield Event(wall_time=BEGIN, step=8, session_log=SessionLog(status=SessionLog.START))
    for i, (step, scalars) in enumerate(SERIES):
        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in scalars.items()]
        yield Event(wall_time=BEGIN + i, step=step, summary=Summary(value=values))


def main(folder):
    with open(pathlib.Path(folder) / "tensorboard.tfevents", "wb") as f:
        writer = RecordWriter(f)
        for event in events():
            writer.write(event.SerializeToString())
        writer.flush()


if __name__ == "__main__":
    main(sys.argv[1])
