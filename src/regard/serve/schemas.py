"""Request and response schemas: LibreTranslate and OpenAI fields, and additional ones."""

from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from regard.base.errors import RegardError
from regard.text.glossary import Glossary
from regard.text.special_marks import replace_marks

# The server's limits are lower; the body has its own limit. Clients cannot send special tokens.
Text = Annotated[str, Field(max_length=10_000_000), AfterValidator(replace_marks)]
MIN_SIMILARITY = 0.8  # minimum similarity of two names, from 0 to 1


def _read_terms(value: Any) -> Any:
    """Read a glossary given as the text of a file."""
    if not isinstance(value, str):
        return value
    try:
        return {term.source: term.forms for term in Glossary.parse(value).terms} if value.strip() else {}
    except RegardError as error:
        raise ValueError(error.message) from None


# Target forms by term, or tab-separated lines as in a glossary file.
Terms = Annotated[dict[Text, list[Text]], BeforeValidator(_read_terms)]


MinQuality = Literal["good", "check"] | Annotated[float, Field(ge=0, le=1)] | None


class _Request(BaseModel):
    """Ignores unknown fields, because clients may target newer services; rejects names that look misspelled."""

    model_config = ConfigDict(extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _refuse_misspelled_fields(cls, fields: Any) -> Any:
        for name in set(fields) - {*cls.model_fields, *NEUTRAL_VALUES} if isinstance(fields, dict) else ():
            for similar in get_close_matches(name[:50], cls.model_fields, 1, MIN_SIMILARITY):
                raise ValueError(f"There is no field '{name[:50]}'. Did you mean '{similar}'?")
        return fields


class TranslateRequest(_Request):
    """`POST /translate`."""

    q: Text | list[Text] = Field(examples=["Two dogs play in the snow."])
    source: str = Field("auto", examples=["en"])
    target: str = Field("", examples=["de"])
    format: Literal["text", "html"] = "text"
    alternatives: int = Field(0, ge=0)
    api_key: str = ""
    # Regard's own:
    model: str | None = None
    beam_size: int | None = Field(None, ge=1)
    prefix: Text = ""
    required: list[Text] = []
    forbidden: list[Text] = []
    glossary: Terms = Field({}, examples=[{"house": ["Haus", "Hauses"]}])
    scores: bool = False
    tokens: bool = False
    alignment: bool = False
    confidence: bool = False
    quality: bool = False
    min_quality: MinQuality = None
    explain: bool = False
    stream: bool = False


class FileRequest(_Request):
    """`POST /translate_file`: form fields sent with the file, or query parameters."""

    source: str = "auto"
    target: str = ""
    model: str | None = None
    min_quality: MinQuality = None
    api_key: str = ""


class DetectRequest(_Request):
    """`POST /detect`."""

    q: Text
    api_key: str = ""


class SuggestRequest(_Request):
    """`POST /suggest`."""

    q: Text = Field(examples=["Two dogs play in the snow."])
    s: Text = Field(examples=["Zwei Hunde spielen im Schnee."])
    source: str = "auto"
    target: str = ""
    model: str | None = None
    api_key: str = ""


class BlameRequest(_Request):
    """`POST /blame`: a source, its translation, and a word of it."""

    q: Text = Field(examples=["Where is the bank?"])
    text: Text = Field(examples=["Wo ist das Ufer?"])
    word: Text = Field(min_length=1, examples=["Ufer"])
    target: str = ""
    model: str | None = None


NEUTRAL_VALUES: dict[str, tuple[object, ...]] = {  # of fields that a request class may not have
    "frequency_penalty": (0, None),
    "presence_penalty": (0, None),
    "logit_bias": ({}, None),
    "best_of": (1, None),
    "suffix": ("", None),
    "tools": ([], None),
    "response_format": ({"type": "text"}, None),
    "logprobs": (False, None),
    "top_logprobs": (0, None),
    "top_k": (-1, 0, None),
    "min_p": (0, None),
    "repetition_penalty": (1, None),
    "beam_size": (1, None),
    "dimensions": (None,),
}


class _OpenAIRequest(_Request):
    """Rejects OpenAI and vLLM fields that would affect the response but are not supported."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_unused_fields(cls, fields: Any) -> Any:
        for name, neutral_values in NEUTRAL_VALUES.items() if isinstance(fields, dict) else ():
            if name in fields and name not in cls.model_fields and fields[name] not in neutral_values:
                raise ValueError(f"{name} is not supported on this route: leave it out.")
        return fields


class _GenerationRequest(_OpenAIRequest):
    """Common fields of the generation routes."""

    model: str = Field(examples=["shakespeare"])
    temperature: float = Field(1.0, ge=0, le=2)
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    n: int = Field(1, ge=1)
    stream: bool = False
    stop: str | list[str] | None = None
    seed: int | None = Field(None, ge=-(2**63), lt=2**63)


class CompletionRequest(_GenerationRequest):
    """`POST /v1/completions`."""

    prompt: Text | list[Text] = Field("", examples=["Once upon a time"])
    max_tokens: int = Field(16, ge=1)
    logprobs: int | None = Field(None, ge=0, le=5)
    echo: bool = False
    # Regard's own:
    top_k: int | None = Field(None, ge=1)
    min_p: Annotated[float, Field(gt=0, le=1)] | None = None
    repetition_penalty: float = Field(1.0, gt=0, le=10)
    beam_size: int | None = Field(None, ge=1)


class ChatMessage(_Request):
    """One message of a conversation."""

    role: Literal["system", "user", "assistant", "tool", "developer"]
    content: Text | list[dict[str, Any]] = ""


class ChatRequest(_GenerationRequest):
    """`POST /v1/chat/completions`."""

    messages: list[ChatMessage] = Field(min_length=1)
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)


class EmbeddingRequest(_OpenAIRequest):
    """`POST /v1/embeddings`."""

    model: str
    input: Text | list[Text]
    encoding_format: Literal["float", "base64"] = "float"


class ClassifyRequest(_Request):
    """`POST /classify` with texts."""

    input: Text | list[Text] = Field(examples=["A fine film."])
    model: str | None = None


class FilesRequest(_Request):
    """`POST /classify` with images or audio clips: form fields sent with the files."""

    model: str | None = None


class MediaSearchRequest(FilesRequest):
    """`POST /caption`: form fields sent with the files."""

    beam_size: int | None = Field(None, ge=1)
    alternatives: int = Field(0, ge=0)


class TranscriptionRequest(MediaSearchRequest):
    """`POST /v1/audio/transcriptions`: form fields sent with the file; beams and alternatives are extensions."""

    response_format: Literal["json", "text"] = "json"
    temperature: float = Field(0, ge=0, le=1)
    prompt: str = ""
    stream: bool = False


def describe_form(fields: type[BaseModel], *, is_list: bool = False) -> dict[str, Any]:
    """Return the OpenAPI description of a form route: one or several files, and these fields."""
    schema = fields.model_json_schema()
    file: dict[str, Any] = {"type": "string", "format": "binary"}
    properties = {"file": {"type": "array", "items": file} if is_list else file, **schema["properties"]}
    form = schema | {"properties": properties, "required": ["file"]}
    return {"requestBody": {"content": {"multipart/form-data": {"schema": form}}}}


def describe_json(fields: type[BaseModel]) -> dict[str, Any]:
    """Return the OpenAPI description of a route that parses JSON itself."""
    return {"requestBody": {"content": {"application/json": {"schema": fields.model_json_schema()}}}}
