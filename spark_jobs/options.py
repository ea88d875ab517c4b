"""The options of every job: one frozen dataclass each, which is also its command line."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

Options = TypeVar("Options")


def option(text: str, default: Any = dataclasses.MISSING, **argument: Any) -> Any:
    """Declare an option: its help, its default (none: it is required), and what else argparse must know."""
    return dataclasses.field(default=default, metadata={"help": text, **argument})


def _positive(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        value = kind(text)
        if value <= 0:
            raise argparse.ArgumentTypeError(f"must be greater than 0: {text}")
        return value

    convert.__name__ = kind.__name__  # argparse names the type in its message
    return convert


def _not_negative(text: str) -> int:
    if int(text) < 0:
        raise argparse.ArgumentTypeError(f"must not be negative: {text}")
    return int(text)


def _part(text: str) -> float:
    if not 0 <= float(text) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 0 and less than 1: {text}")
    return float(text)


def _statuses(text: str) -> tuple[int, ...]:
    return tuple(sorted({int(part) for part in text.split(",")}))


def _property(text: str) -> str:
    if "=" not in text:
        raise argparse.ArgumentTypeError(f"must be KEY=VALUE: {text}")
    return text


_SESSION = "the Spark session, where spark-submit has not started one"


@dataclass(frozen=True, kw_only=True)
class SessionOptions:
    """The local session."""

    master: str = option("Spark master", "local[*]", group=_SESSION)
    conf: tuple[str, ...] = option(
        "Spark property, repeatable",
        (),
        group=_SESSION,
        metavar="KEY=VALUE",
        type=_property,
        action="append",
    )


@dataclass(frozen=True, kw_only=True)
class RunOptions(SessionOptions):
    """What every job of a run takes: where the run lives, what a page may cost, and the local session."""

    output: str = option("directory or URL of the run: holds extractions/, run.json and _work/", metavar="OUT")
    page_seconds: float = option(
        "CPU time that one page may take before it becomes a row with the error `timeout`",
        30.0,
        type=_positive(float),
    )
    page_memory_mb: int = option(
        "memory that one page may take, on the retry of a task that a page has killed, before it becomes a "
        "row with the error `memory` or `crash`",
        768,
        type=_positive(int),
    )


@dataclass(frozen=True, kw_only=True)
class SignOptions(RunOptions):
    """Read all pages and write their signatures."""

    input: tuple[str, ...] = option(
        "files, directories, globs, or lists of files (@FILE, or a name in .txt, .paths or .paths.gz); "
        "local or s3://, gs://, hdfs://",
        metavar="PATH",
        nargs="+",
        action="extend",
    )
    format: Literal["auto", "warc", "parquet", "jsonl"] = option(
        "format of the input; auto tells it by the file names",
        "auto",
        choices=("auto", "warc", "parquet", "jsonl"),
    )
    url_column: str = option("column or field of the page's URL (Parquet, JSONL)", "url", metavar="NAME")
    html_column: str = option("column or field of the page's HTML (Parquet, JSONL)", "html", metavar="NAME")
    statuses: tuple[int, ...] = option(
        "HTTP statuses of the pages to take, separated by commas (WARC)",
        (200,),
        metavar="LIST",
        type=_statuses,
    )
    max_page_bytes: int = option(
        "pages of more bytes (decompressed) become rows with the error `too_large`",
        16 << 20,
        type=_positive(int),
    )
    overwrite: bool = option("remove the run that OUT holds, finished or not, and start anew", False)


@dataclass(frozen=True, kw_only=True)
class StoreOptions(RunOptions):
    """Where templates are kept between runs."""

    store: str | None = option(
        "template store (directory or URL): its templates come first, and new ones are appended",
        None,
        metavar="STORE",
    )


@dataclass(frozen=True, kw_only=True)
class ClusterOptions(StoreOptions):
    """Group the pages of each host into clusters, those of known templates first."""

    max_host_signatures: int = option(
        "hosts with more distinct signatures are clustered on a sample of so many, to which the others are assigned",
        20_000,
        type=_positive(int),
    )
    audit_pages: int = option("pages to label besides the representative in a large cluster", 2, type=_not_negative)
    audit_cluster_pages: int = option(
        "pages that make a cluster large: audit pages are then at most a fiftieth of it",
        200,
        type=_positive(int),
    )
    witness_pages: int = option(
        "pages of a cluster that are read without labelling them: they show what repeats in the layout",
        8,
        type=_not_negative,
    )


@dataclass(frozen=True, kw_only=True)
class ModelOptions(RunOptions):
    """What a model may cost."""

    label_seconds: float = option(
        "CPU time, on all cores, that a model (encoder, decoder) may take for one page, in place of --page-seconds; "
        "an average of the pages that it gets at once, up to 32. --page-memory-mb does not bind a model",
        300.0,
        type=_positive(float),
    )


def _share(text: str) -> float:
    if not 0 < float(text) <= 1:
        raise argparse.ArgumentTypeError(f"must be greater than 0 and at most 1: {text}")
    return float(text)


@dataclass(frozen=True, kw_only=True)
class LabelOptions(ModelOptions):
    """Label the representative pages with the classifier."""

    classifier: str = option(
        "what labels pages: `embedded` (ships with Stencil, a small network that runs on the CPU), `embedded:DIR` (the "
        "same with weights of `stencil train`), `labels:PATH` (a table of url, gold_paths and gold_excluded_paths: a "
        "file, a directory or a glob of Parquet or JSONL), or a model: "
        "`encoder:PATH` or `decoder:PATH` (a checkpoint's folder, or its name on the Hugging Face hub)",
        "embedded",
        metavar="SPEC",
    )
    device: str | None = option(
        "torch device of the classifier's model, such as cuda, cuda:1 or cpu; default: the GPU that Spark assigned "
        "to the task, else the GPU if there is one",
        None,
        metavar="NAME",
    )
    dtype: Literal["bfloat16", "float16", "float32"] | None = option(
        "numbers that the classifier's model computes with; default: bfloat16 on a GPU, else float32",
        None,
        choices=("bfloat16", "float16", "float32"),
    )
    max_batch_tokens: int | None = option(
        "most tokens, with padding, that the classifier's model reads at once; halved where the memory of the "
        "device is too small; default: 65536",
        None,
        type=_positive(int),
    )
    label_gpus: float | None = option(
        "GPUs that one task of the label stage takes: 1, or a share such as 0.5 where two tasks are to share one; asks "
        "the cluster for executors with a GPU for this stage alone. Default: the executors that there are",
        None,
        metavar="SHARE",
        type=_share,
    )
    model_budget: float | None = option(
        "most pages to label in all rounds: a share of the pages (up to 1) or a count; the largest clusters "
        "come first; default: no limit",
        None,
        metavar="N",
        type=_positive(float),
    )


@dataclass(frozen=True, kw_only=True)
class InduceOptions(StoreOptions):
    """Make a template of each labelled cluster and append it to the store."""


_LINKS: Any = option(
    "Markdown of links: none, their text alone; inline, with their addresses", "none", choices=("none", "inline")
)
_IMAGES: Any = option(
    "Markdown of pictures: none; alt, what stands for one; inline, with its address",
    "none",
    choices=("none", "alt", "inline"),
)


def _columns(text: str) -> tuple[str, ...]:
    names = tuple(sorted({name for name in text.split(",") if name != "none"}))
    if unknown := set(names) - {"markdown", "content_list"}:
        raise argparse.ArgumentTypeError(f"no such column: {', '.join(sorted(unknown))}")
    return names


@dataclass(frozen=True, kw_only=True)
class ConversionOptions(RunOptions):
    """What is made of main HTML."""

    emit: tuple[str, ...] = option(
        "columns to make of the main HTML beside its text: markdown, content_list, both with a comma, or none",
        ("markdown",),
        metavar="COLUMNS",
        type=_columns,
    )
    links: Literal["none", "inline"] = _LINKS
    images: Literal["none", "alt", "inline"] = _IMAGES


@dataclass(frozen=True, kw_only=True)
class PropagateOptions(ConversionOptions, ModelOptions):
    """Apply the templates to all pages and write the extractions."""

    rounds: int = option(
        "pages that no template explains are clustered and labelled again, up to so many rounds in all; the "
        "last one leaves them to the fallback",
        2,
        type=_positive(int),
    )
    fallback: str = option(
        "what extracts a page that no template explains: a classifier as in `--classifier`, or `none`",
        "embedded",
        metavar="SPEC",
    )


@dataclass(frozen=True, kw_only=True)
class ExtractOptions(SignOptions, ClusterOptions, LabelOptions, InduceOptions, PropagateOptions):
    """Run all stages in order and write one extraction row for every page; resumes what was interrupted."""


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(SessionOptions):
    """Compare extractions with ground truth, by set, page type, language, site and route."""

    extractions: str = option(
        "output of a run (OUT or OUT/extractions), or other Parquet with the columns url and text", metavar="PATH"
    )
    truth: tuple[str, ...] = option(
        "ground truth in JSON lines (.jsonl, .jsonl.gz): files, directories, globs; fields as in the README, or "
        "WebMainBench's",
        metavar="PATH",
        nargs="+",
        action="extend",
    )
    split: str | None = option("only the pages of this split of the ground truth, such as test", None, metavar="NAME")
    output: str | None = option("directory to write the tables pages/ and figures/ to", None, metavar="DIR")
    worst: int = option("pages to list with the lowest F1", 10, type=_not_negative, metavar="N")
    floors: str | None = option(
        "JSON file of figures that must not fall; the job ends with 1 where one does", None, metavar="FILE"
    )
    set_floors: bool = option("write what was reached into the floors file, unless a figure fell", False)
    lower_floors: bool = option("write what was reached into the floors file, also where a figure fell", False)


@dataclass(frozen=True, kw_only=True)
class LabelJobOptions(SignOptions, LabelOptions, ConversionOptions):
    """Label every page of --input by itself; without --input, the representative pages of the run in OUT."""

    input: tuple[str, ...] = dataclasses.field(default=(), metadata=SignOptions.__dataclass_fields__["input"].metadata)


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """Train the embedded classifier, or fine-tune an encoder, on pages with ground truth; needs no Spark."""

    corpora: tuple[str, ...] = option(
        "pages with ground truth in JSON lines (.jsonl, .jsonl.gz): files, directories, globs; fields as in the README",
        metavar="PATH",
        nargs="+",
        action="extend",
    )
    splits: str | None = option(
        "JSON file that says for sites, by the name of a file's folder, which are train, dev or test; other pages say "
        "it in their field `split`",
        None,
        metavar="FILE",
    )
    dev_share: float = option(
        "share of the registered domains that go to dev, of those whose pages name no split", 0.1, type=_part
    )
    output: str = option("directory to write the weights and their record to", metavar="DIR")
    model: str = option(
        "what to train: `embedded`, from nothing, or `encoder:PATH`, from a checkpoint; options of the spec count, as "
        "in encoder:PATH?chunk_tokens=4096&batch_tokens=16384&device=cuda",
        "embedded",
        metavar="SPEC",
    )
    teacher: str | None = option(
        "model to distil, as in `--model`; an encoder learns from an `encoder:PATH` with the same tokenizer, "
        "`embedded` from any classifier",
        None,
        metavar="SPEC",
    )
    seed: int = option("number that every random choice comes from", 0, type=_not_negative)
    epochs: int | None = option("times that every page is read; default: 7, of an encoder 3", None, type=_positive(int))
    learning_rate: float | None = option(
        "highest rate of learning; default: 0.003, of an encoder 0.00005", None, type=_positive(float)
    )
    batch_pages: int | None = option(
        "pages of one step, of an encoder chunks of pages; default: 12, of an encoder 16", None, type=_positive(int)
    )
    overwrite: bool = option("replace the weights that DIR holds", False)


@dataclass(frozen=True, kw_only=True)
class TemplateOptions:
    """Show, compare, edit or forget templates of a store; a person's edit takes the place of what it was made from."""

    action: str = option(
        "show: print templates; diff: compare a template with an edited FILE; edit-from: put FILE in its place; "
        "forget: take templates away; compact: rewrite the store as one file",
        choices=("show", "diff", "edit-from", "forget", "compact"),
        positional=True,
    )
    host: str | None = option("host whose templates are meant", None, metavar="HOST", positional=True)
    store: str = option("template store (directory or URL)", metavar="STORE")
    template: str | None = option("only the template of this id", None, metavar="ID")
    file: str | None = option("an edited template (JSON, as `show --json` prints it)", None, metavar="FILE")
    json: bool = option("print the templates as JSON, one a line", False)


@dataclass(frozen=True, kw_only=True)
class ConvertOptions:
    """Print the Markdown, or the content list, of HTML that is taken as main content; needs no Spark."""

    path: str = option("HTML file, or - for the standard input", metavar="FILE", positional=True)
    url: str = option("address of the page, to make links absolute", "")
    links: Literal["none", "inline"] = _LINKS
    images: Literal["none", "alt", "inline"] = _IMAGES
    content_list: bool = option("print the content list as JSON", False)


JOBS: dict[str, type[Any]] = {
    "extract": ExtractOptions,
    "sign": SignOptions,
    "cluster": ClusterOptions,
    "label": LabelJobOptions,
    "induce": InduceOptions,
    "propagate": PropagateOptions,
    "evaluate": EvaluateOptions,
    "train": TrainOptions,
    "template": TemplateOptions,
    "convert": ConvertOptions,
}
"""Job names and their options, the main job first."""


_RESUME = (
    "The stages of a run are sign, then rounds of cluster, label, induce and propagate. A stage job runs its "
    "stage of the run in OUT, in the first round that has not done it yet; extract then goes on from there."
)


class _Parser(argparse.ArgumentParser):
    """A parser that also reads arguments from a file of one a line."""

    def convert_arg_line_to_args(self, arg_line: str) -> list[str]:
        return [] if not arg_line.strip() or arg_line.startswith("#") else [arg_line.strip()]


def parser() -> argparse.ArgumentParser:
    """Build the command line of all jobs."""
    top = _Parser(
        prog="stencil",
        fromfile_prefix_chars="@",
        description="Extract the main content of web pages at corpus scale: a classifier reads one page of "
        "each template, and rules extract the others.",
        epilog="`stencil JOB --help` lists the options of a job; `stencil JOB @FILE` reads them from "
        "a file, one a line. "
        "Exit codes: 0 done, 1 the job failed (run it again "
        "to resume), 2 the request cannot be met.",
    )
    jobs = top.add_subparsers(dest="job", metavar="JOB", required=True)
    for name, kind in JOBS.items():
        summary = str(kind.__doc__)
        resume = _RESUME if issubclass(kind, RunOptions) else ""
        job = jobs.add_parser(name, help=summary, description=summary, epilog=resume)
        groups: dict[str, Any] = {"": job}
        for field in sorted(dataclasses.fields(kind), key=lambda field: (not _required(field), field.name)):
            group = field.metadata.get("group", "")
            if group not in groups:
                groups[group] = job.add_argument_group(group)
            _add(groups[group], field)
    return top


def parse(arguments: Sequence[str]) -> tuple[str, Any]:
    """Parse a command line into the job's name and its options; exits with code 2 on a bad one."""
    values = vars(parser().parse_args(arguments))
    job = values.pop("job")
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return job, JOBS[job](**values | lists)


def _required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING


def _add(job: Any, field: dataclasses.Field[Any]) -> None:
    argument = {name: value for name, value in field.metadata.items() if name != "group"}
    text = argument.pop("help").replace("%", "%%")
    if argument.pop("positional", False):
        if not _required(field):
            argument |= {"nargs": "?", "default": field.default}
        job.add_argument(field.name, help=text, **argument)
        return
    flag = "--" + field.name.replace("_", "-")
    required = _required(field)
    if field.type == "bool":
        job.add_argument(flag, action="store_true", help=text)
        return
    if not required and field.default not in (None, ()):
        shown = ",".join(map(str, field.default)) if isinstance(field.default, tuple) else field.default
        text += f" (default: {shown})"
    # A list that argparse extends must not start from the default, which it would keep.
    default = None if required else list(field.default) if field.default == () else field.default
    if "choices" not in argument:
        argument.setdefault("metavar", field.name.rsplit("_", 1)[-1].upper())
    job.add_argument(flag, required=required, default=default, help=text, **argument)
