"""Client of the ReviewRelay API, and verification of its webhooks."""

from ._client import Pages, ReviewRelay
from ._errors import ApiError
from ._oauth import OAuthToken, OAuthTokens
from ._sequence import NumberRange, Place, SequenceState, Step, advance, place_of
from ._verify import Event, MinimalEvent, SignatureError, verify, verify_minimal

__all__ = [
    "ApiError",
    "Event",
    "MinimalEvent",
    "NumberRange",
    "OAuthToken",
    "OAuthTokens",
    "Pages",
    "Place",
    "ReviewRelay",
    "SequenceState",
    "SignatureError",
    "Step",
    "advance",
    "place_of",
    "verify",
    "verify_minimal",
]
