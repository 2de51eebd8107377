"""The settings: settings.json and GROUNDNOTE_ variables, validated once, as frozen values.

Variables win over the file, the file over the defaults. `GROUNDNOTE_LLM__MODEL` sets `llm.model`.
`CONTEXT_MESSAGE_PAIRS`, `HOST` and `PORT` are honoured too. Empty text sets nothing.
"""

import json
import logging
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from rag.errors import SetupError
from rag.seams.models import ANSWER, FOLLOW_UP, JUDGEMENT, SUMMARY

log = logging.getLogger(__name__)

PREFIX = "GROUNDNOTE_"
NESTED = "__"
GROUP = "group:"  # begins the name of a group where members are named
FILE_VARIABLE = "GROUNDNOTE_SETTINGS"
HOME = Path(__file__).resolve().parent.parent
HomePath = Annotated[Path, AfterValidator(Path.expanduser)]  # ~ is the home folder
# Names that Kubernetes sets for each service, and values that it gives them.
_OF_KUBERNETES = re.compile(r"GROUNDNOTE_(?:\w+_)?(?:SERVICE_\w+|PORT(?:_\d+_\w+)?)")
_ADDRESS = re.compile(r"(?:tcp|udp|sctp)://")


class _EmptyIsUnset(BaseModel):
    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, values: Any) -> Any:
        """Drop empty values: a script often passes on an empty variable, which sets nothing."""
        if not isinstance(values, Mapping):
            return values
        return {key: value for key, value in values.items() if value != ""}


class _SettingsSection(_EmptyIsUnset):
    model_config = ConfigDict(frozen=True, extra="forbid")
    removed: ClassVar[Mapping[str, str]] = {}  # removed settings, and why they do nothing now

    @model_validator(mode="before")
    @classmethod
    def _without_removed(cls, values: Any) -> Any:
        """Drop settings that do nothing any more, with a warning: older files still work."""
        if not isinstance(values, Mapping):
            return values
        for key in cls.removed.keys() & values.keys():
            log.warning("The setting %s does nothing any more: %s", key, cls.removed[key])
        return {key: value for key, value in values.items() if key not in cls.removed}


class LlmSettings(_SettingsSection):
    """The language model; without `base_url` or `model` answers are extractive."""

    base_url: str | None = None
    model: str | None = None
    choices: tuple[str, ...] = ()  # other models of the server that people may pick
    api_key_env: str = "OPENAI_API_KEY"
    temperature: float = Field(0.2, ge=0, le=2)
    timeout_seconds: float = Field(ANSWER.seconds, gt=0)
    answer_seconds: float = Field(600, gt=0)  # for a whole answer
    max_retries: int = Field(2, ge=0, le=10)
    max_tokens: int | None = Field(None, ge=50)  # of one answer; None: by the window
    context_window: int | None = Field(None, ge=512)  # upper limit, whatever the server says
    reasoning: Literal["off", "low", "medium", "high"] | None = None
    extra_body: dict[str, Any] = Field(default_factory=dict)  # sent with every request
    tools: bool = True
    written_calls: bool = True  # also read calls that a model writes as text
    calls_at_once: int = Field(32, ge=1)  # to one server; an eighth for one of several owners

    _api_key: SecretStr | None = PrivateAttr(None)  # of a model connected in the browser

    @property
    def is_configured(self) -> bool:
        return self.model is not None

    @property
    def api_key(self) -> str | None:
        """The key sent to the server; None where it needs none."""
        if self._api_key is not None:
            return self._api_key.get_secret_value() or None
        return os.environ.get(self.api_key_env)

    @property
    def pickable(self) -> tuple[str, ...]:
        """The models that may be picked, the default one first; () if there is no other."""
        others = [name for name in dict.fromkeys(self.choices) if name != self.model]
        return (self.model, *others) if self.model is not None and others else ()

    def connected(
        self, base_url: str, model: str, api_key: str, choices: tuple[str, ...] = ()
    ) -> "LlmSettings":
        """Return these settings with another server, model and key ("" is none)."""
        other = self.model_copy(update={"base_url": base_url, "model": model, "choices": choices})
        other._api_key = SecretStr(api_key)
        return other


class EmbeddingSettings(_SettingsSection):
    """The embedding model; the packaged MiniLM unless another one is named."""

    removed = {"cache_dir": "embedding.cache_dir held converted models; none is converted now."}
    model: str | None = None
    base_url: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    batch_size: int = Field(64, ge=1, le=2048)
    allow_download: bool = False
    multilingual: bool = True  # a second model beside the packaged one

    @property
    def is_packaged(self) -> bool:
        """Whether it is the packaged model, which knows English only."""
        return self.model is None and self.base_url is None


class ChecksSettings(_SettingsSection):
    """The judge of statements that words leave open."""

    model: str = "auto"  # the language model of answers, if there is one; "off"; or another's name
    nli_model: HomePath | None = None  # a cross-encoder on disk, asked instead of a language model
    timeout_seconds: float = Field(JUDGEMENT.seconds, gt=0)


class RetrievalSettings(_SettingsSection):
    """How passages are searched."""

    limit: int = Field(8, ge=1, le=50)
    rerank_model: str | None = None
    vectors: Literal["chroma", "postgresql"] = "chroma"  # "postgresql" uses pgvector
    chroma_url: str | None = None
    chroma_collection: str = Field(
        "groundnote", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{1,60}[A-Za-z0-9]$"
    )

    @property
    def is_shared(self) -> bool:
        """Whether several processes may use the vectors at once."""
        return self.chroma_url is not None or self.vectors == "postgresql"


class ContextSettings(_SettingsSection):
    """What the model sees of a session."""

    compression_strategy: Literal["smart", "sliding_window"] = "smart"
    recent_message_count: int = Field(10, ge=0, le=1000)
    default_window: int = Field(8000, ge=512)
    input_share: float = Field(0.6, gt=0, lt=1)
    reserved_tokens: int = Field(150, ge=0)
    high_water: float = Field(0.6, gt=0, le=1)
    low_water: float = Field(0.3, gt=0, le=1)
    max_pairs: int = Field(20, ge=1)
    recall_tokens: int = Field(4_000, ge=0)  # in windows beyond 8k


class SummarizationSettings(_SettingsSection):
    """How old turns are summarised."""

    removed = {
        "thread": "the model writes the summary, verified against the turns; "
        "summarization_settings.enabled: false leaves summaries out."
    }
    enabled: bool = True
    max_summary_tokens: int = Field(800, ge=50)
    summary_temperature: float = Field(0.3, ge=0, le=2)
    summary_model: str | None = None
    timeout_seconds: float = Field(SUMMARY.seconds, gt=0)


class FollowUpSettings(_SettingsSection):
    """How follow-up questions are resolved."""

    removed = {"cue_words": "what a search finds says whether a question goes on, no words do."}
    enabled: bool = True
    use_model: bool = True
    max_turns: int = Field(10, ge=1, le=50)
    timeout_seconds: float = Field(FOLLOW_UP.seconds, gt=0)


class SessionSettings(_SettingsSection):
    """Where sessions are stored, and how long."""

    database_url: str | None = None
    ttl_hours: float | None = Field(None, gt=0)
    default_owner: str = "local"


class DocumentSettings(_SettingsSection):
    """Which files are read, and how."""

    max_file_mb: float = Field(50, gt=0)
    max_pages: int = Field(5000, ge=1)
    read_timeout_seconds: float = Field(120, gt=0)
    products: tuple[str, ...] = ()
    keep_originals: bool = True
    originals_url: str | None = None  # a folder or URL, where several machines open each file
    ocr_languages: tuple[str, ...] = ()  # of pictures, besides those that the packaged model reads
    reader_url: str | None = None  # a docling-serve that reads PDF and Office files instead
    reader_api_key: SecretStr | None = None
    reader_timeout_seconds: float = Field(300, gt=0)  # for one file


class TableSettings(_SettingsSection):
    """Where the rows of tables are kept: a folder, or a URL such as s3://bucket/tables."""

    url: str | None = None


class SourceSettings(_SettingsSection):
    """The sources that collections may be kept in step with."""

    folders: tuple[HomePath, ...] = ()  # managers of a collection may add folders below these
    stores: tuple[str, ...] = ()  # managers may add addresses that begin with these
    kinds: tuple[str, ...] = ()  # kinds of installed packages that managers may add
    private_hosts: tuple[str, ...] = ()  # hosts of the private network that may be read
    passwords: dict[str, SecretStr] = Field(default_factory=dict)  # by the names in addresses
    grace_days: float = Field(30, ge=0)  # for which removed documents can be restored
    most_removed: int = Field(50, ge=0)  # at once without confirmation
    most_removed_share: float = Field(0.2, ge=0, le=1)
    most_files: int = Field(20_000, ge=1)  # of one source


class WebSettings(_SettingsSection):
    """The server and its addresses."""

    host: str = "127.0.0.1"
    port: int = Field(8000, ge=0, le=65535)
    threads: int = Field(64, ge=4)
    workers: int = Field(1, ge=1, le=64)
    stop_seconds: float = Field(25.0, ge=0)
    max_question_chars: int = Field(20_000, ge=100)
    rate_limit: str | None = None
    rate_limit_storage: str = "memory://"
    allowed_hosts: tuple[str, ...] = ()  # required if other machines reach the server
    # Where people open the library, for links in answers; None: the host of the request.
    public_url: str | None = Field(None, pattern=r"^https?://[^/\s]+(/[^\s?#]*)?$")
    allowed_origins: tuple[str, ...] = ()  # of browser apps that call /v1 with a token
    link_keys: tuple[SecretStr, ...] = ()  # sign links to single sources; the first signs
    link_hours: float = Field(168, gt=0)  # for which such a link is valid
    metrics_token: SecretStr | None = None  # without it, only this machine may read the metrics


class OidcSettings(_SettingsSection):
    """The OpenID Connect provider where callers log in, and the claims that are used."""

    discovery_url: str  # ends with /.well-known/openid-configuration
    client_id: str
    client_secret: SecretStr | None = None
    callback_url: str | None = None  # as the provider knows it, if behind a proxy
    scope: str = "openid email profile"
    owner_claim: str = "email"
    groups_claim: str = "groups"
    allowed: tuple[str, ...] = ()  # owners, group:…, @domain; (): all users of the provider
    login_hours: float = Field(12, gt=0)


class AuthSettings(_SettingsSection):
    """How callers are identified, and who manages."""

    mode: Literal["single", "tokens", "proxy", "oidc"] = "single"
    tokens: dict[str, str] = Field(default_factory=dict)
    proxy_header: str = "X-Forwarded-User"
    trusted_proxies: tuple[str, ...] = ("127.0.0.0/8", "::1")
    allow_public: bool = False
    admins: tuple[str, ...] = ()
    managers: tuple[str, ...] = ()
    groups: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    oidc: OidcSettings | None = None

    @property
    def believed_proxies(self) -> tuple[str, ...]:
        """The named proxies; by default this machine if `mode` is "proxy", else none."""
        is_named = self.mode == "proxy" or "trusted_proxies" in self.model_fields_set
        return self.trusted_proxies if is_named else ()

    def counts_as(self, owner: str, groups: Iterable[str] = ()) -> frozenset[str]:
        """Return an owner and its groups, as members of collections are named.

        `groups` are those that a login provider names; groups of the settings may contain them,
        too.
        """
        names = {owner, *(f"{GROUP}{group}" for group in groups)}
        memberships = (
            f"{GROUP}{group}" for group, who in self.groups.items() if not names.isdisjoint(who)
        )
        return frozenset(names.union(memberships))


class JobSettings(_SettingsSection):
    """Background jobs."""

    url: str | None = None
    workers: int = Field(2, ge=0, le=64)  # threads of a process; 0: other processes do the jobs


class Settings(BaseSettings, _EmptyIsUnset):
    """All settings, with their defaults."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix=PREFIX,
        env_nested_delimiter=NESTED,
        env_ignore_empty=True,
    )

    data_dir: HomePath = Path("var")
    llm: LlmSettings = LlmSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    retrieval: RetrievalSettings = RetrievalSettings()
    checks: ChecksSettings = ChecksSettings()
    context: ContextSettings = ContextSettings()
    summarization_settings: SummarizationSettings = SummarizationSettings()
    follow_up: FollowUpSettings = FollowUpSettings()
    sessions: SessionSettings = SessionSettings()
    documents: DocumentSettings = DocumentSettings()
    tables: TableSettings = TableSettings()
    sources: SourceSettings = SourceSettings()
    web: WebSettings = WebSettings()
    auth: AuthSettings = AuthSettings()
    jobs: JobSettings = JobSettings()

    @property
    def database_url(self) -> str:
        return self.sessions.database_url or f"sqlite:///{self.data_dir}/groundnote.db"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return env_settings, init_settings  # the file's values are passed as arguments


def settings_file(named: str | Path | None = None) -> Path | None:
    """Return the path of the settings file, or None.

    It is the named one, else GROUNDNOTE_SETTINGS, else settings.json in the current folder or at
    the top level of the project.
    """
    chosen = named or os.environ.get(FILE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    for folder in (Path.cwd(), HOME):
        if (folder / "settings.json").is_file():
            return folder / "settings.json"
    return None


def load_settings(named: str | Path | None = None, **overrides: Any) -> Settings:
    """Read the settings; `overrides` are whole sections or top-level values and win over the file.

    A relative `data_dir` counts from the folder of the settings file, unless a variable set it.

    Raises:
        SetupError: the file is missing or broken, or a key or value is wrong; names each.
    """
    path = settings_file(named)
    _refuse_unknown_sections()
    _check_single_underscores()
    values = _merge_sections(_from_file(path) if path else {}, _from_plain_variables())
    values = _merge_sections(values, overrides)
    try:
        settings = Settings(**values)
    except ValidationError as error:
        raise SetupError(_explain(error, path)) from error
    except SettingsError as error:
        raise SetupError(_explain_variable(error)) from error
    if settings.llm.base_url and not settings.llm.model:
        raise SetupError(
            f"llm.base_url is {settings.llm.base_url!r}, but llm.model is not set: answers would "
            "have no model. Name the model that the server has, or remove llm.base_url."
        )
    if settings.data_dir.is_absolute():
        return settings
    from_file = path is not None and not os.environ.get(f"{PREFIX}DATA_DIR")
    folder = path.resolve().parent if path is not None and from_file else Path.cwd()
    return settings.model_copy(update={"data_dir": folder / settings.data_dir})


def _from_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
        values = json.loads(text, object_pairs_hook=lambda pairs: _once_each(pairs, path))
    except OSError as error:
        raise SetupError(
            f"The settings file {path} cannot be read ({error.strerror}). Name another one with "
            f"--settings or {FILE_VARIABLE}."
        ) from error
    except (ValueError, RecursionError) as error:
        raise SetupError(f"{path} is not valid JSON: {error}.") from error
    if not isinstance(values, dict):
        raise SetupError(f"{path} must hold one JSON object, not {type(values).__name__}.")
    return values


def _once_each(pairs: list[tuple[str, Any]], path: Path) -> dict[str, Any]:
    """Return an object of the file; refuse a key that stands twice, one of which would be lost."""
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise SetupError(f"{path}: {', '.join(twice)} stands twice in one object. Merge them.")
    return values


def _from_plain_variables() -> dict[str, Any]:
    """Read HOST, PORT and CONTEXT_MESSAGE_PAIRS, unless the long name is set as well."""
    values: dict[str, Any] = {}
    for variable in ("HOST", "PORT"):
        if os.environ.get(variable) and not os.environ.get(f"{PREFIX}WEB{NESTED}{variable}"):
            values.setdefault("web", {})[variable.lower()] = os.environ[variable]
    pairs = os.environ.get("CONTEXT_MESSAGE_PAIRS")
    if pairs:
        if not pairs.isdecimal():
            raise SetupError(
                f"CONTEXT_MESSAGE_PAIRS is {pairs!r}; expected a whole number of pairs such as 5."
            )
        values["context"] = {"recent_message_count": 2 * int(pairs)}
    return values


def _refuse_unknown_sections() -> None:
    """Refuse variables of unknown sections.

    Unknown keys of a section are refused with the others. Names without `__` may be foreign:
    Kubernetes creates some for each service.
    """
    for variable in os.environ:
        section, nested, _ = variable.lower().removeprefix(PREFIX.lower()).partition(NESTED)
        is_ours = variable.upper().startswith(PREFIX) and nested
        if is_ours and section not in Settings.model_fields:
            sections = ", ".join(name for name in Settings.model_fields if name != "data_dir")
            raise SetupError(f"{variable}: {section} is not a section. Known: {sections}.")


def _check_single_underscores() -> None:
    """Refuse, or at least log, a variable that was meant to set something and does not."""
    for variable, value in os.environ.items():
        name = variable.upper()
        is_ours = name in _OTHER_VARIABLES or name.startswith(_OF_TESTS)
        if not name.startswith(PREFIX) or NESTED in name or is_ours:
            continue
        setting = _setting_meant(name.removeprefix(PREFIX).lower())
        if setting and not _ADDRESS.match(value):
            raise SetupError(
                f"{variable} sets nothing: between section and key stand two underscores. "
                f"Write {PREFIX}{setting}, or remove it."
            )
        if setting or not _OF_KUBERNETES.fullmatch(name):
            log.warning("%s is no setting and is passed over.", variable)


_OF_TESTS = (f"{PREFIX}TEST_", f"{PREFIX}BENCH_")
_OTHER_VARIABLES = (FILE_VARIABLE, f"{PREFIX}TOKEN", f"{PREFIX}DATA_DIR", f"{PREFIX}SECRET_KEY")


def _setting_meant(name: str) -> str:
    """Return `LLM__MODEL` for `llm_model`; "" if that is no setting."""
    for section, field in Settings.model_fields.items():
        key = name.removeprefix(f"{section}_")
        kind = field.annotation
        is_section = isinstance(kind, type) and issubclass(kind, BaseModel)
        if key != name and is_section and key in kind.model_fields:  # type: ignore[union-attr]
            return f"{section}{NESTED}{key}".upper()
    return ""


def _merge_sections(values: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge section by section, key by key; `over` wins."""
    merged = dict(values)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = {**merged[key], **value} if both else value
    return merged


def _explain(error: ValidationError, path: Path | None) -> str:
    lines = []
    for problem in error.errors():
        where = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            lines.append(f"{where} is not a setting. Known here: {_describe_keys(problem['loc'])}.")
        else:
            lines.append(f"{where} is {problem['input']!r}: {problem['msg']}.")
    origin = f"{path} or the {PREFIX}… variables" if path else f"the {PREFIX}… variables"
    return f"Wrong settings in {origin}:\n" + "\n".join(lines)


def _explain_variable(error: SettingsError) -> str:
    """Explain a variable that is not JSON where JSON is expected; the error names its section."""
    section = next((name for name in Settings.model_fields if f'"{name}"' in str(error)), "")
    begins = f"{PREFIX}{section}".upper()
    names = sorted(name for name in os.environ if name.upper().startswith(begins))
    return (
        f"One of these variables cannot be read ({error.__cause__ or error}): {', '.join(names)}. "
        f'Lists and tables are written as JSON, such as ["Aero 5"] or {{"key": "value"}}; single '
        f"values have a variable each, such as {PREFIX}LLM{NESTED}MODEL."
    )


def _describe_keys(location: tuple[int | str, ...]) -> str:
    model: Any = Settings
    for part in location[:-1]:
        field = model.model_fields.get(part)
        model = field.annotation if field is not None else model
    return ", ".join(model.model_fields)
