"""The one submitted file, and the console entry: JOB [options]."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

if not __package__:
    # Run as a file, Python puts this directory first on the path, where our modules have common names.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from spark_jobs import options as job_options
from spark_jobs.errors import StencilError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a job and return its exit code: 0 done, 1 the job failed, 2 the request cannot be met."""
    job, options = job_options.parse(sys.argv[1:] if arguments is None else arguments)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("stencil").setLevel(logging.INFO)
    try:
        for line in _run(job, options):
            print(line)
    except StencilError as error:
        print(f"stencil {job}: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print(
            f"stencil {job}: interrupted. What is done is kept: run the same command to resume",
            file=sys.stderr,
        )
        return 130
    return 0


def _run(job: str, options: Any) -> Iterable[str]:
    """Run a job; each imports what it needs, --help neither Spark nor lxml, convert, template and train no Spark."""
    if job == "convert":
        from spark_jobs import convert

        return convert.run(options)
    if job == "template":
        from spark_jobs import template

        return template.run(options)
    if job == "train":
        from spark_jobs import train

        return train.run(options)
    from spark_jobs import jobs

    return jobs.run(job, options)


if __name__ == "__main__":
    sys.exit(main())
