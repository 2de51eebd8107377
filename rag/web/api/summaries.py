"""What programs are sent of summaries."""

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from rag.records import Summary, SummaryReport


class SummaryReportModel(BaseModel):
    """What a summary had to keep, and what became of it; see `rag.records.SummaryReport`."""

    citations_required: int
    citations_kept: int
    names_required: int
    names_kept: int
    stated_citations: list[int]
    listed_citations: list[int]
    archived_citations: list[int]
    stated_names: list[str]
    listed_names: list[str]
    archived_names: list[str]
    statements: int
    chosen: int
    tokens_before: int
    tokens_after: int
    attempts: int
    seconds: float
    model: str
    problems: list[str]

    @classmethod
    def of(cls, report: SummaryReport) -> "SummaryReportModel":
        return cls.model_validate(to_jsonable_python(report))


class QuotationModel(BaseModel):
    """A line of a summary, by its offsets there, and the message that it is a span of."""

    start: int
    end: int
    message: int


class SummaryModel(BaseModel):
    """A verified text standing in for the messages `[start, end)`."""

    id: int | None
    start: int
    end: int
    text: str
    required_numbers: list[int]
    required_names: list[str]
    tokens: int
    quotations: list[QuotationModel]
    report: SummaryReportModel

    @classmethod
    def of(cls, summary: Summary) -> "SummaryModel":
        return cls.model_validate(to_jsonable_python(summary))


class SummariesModel(BaseModel):
    """Summaries standing in the context, and those made on request."""

    summaries: list[SummaryModel]
    requested: list[SummaryModel]


class CompactedModel(BaseModel):
    """The report of a compaction; null when there was nothing to summarise."""

    compacted: bool
    report: SummaryReportModel | None


class ForgottenModel(BaseModel):
    """How many summaries were forgotten; the transcript stays."""

    forgotten: int
