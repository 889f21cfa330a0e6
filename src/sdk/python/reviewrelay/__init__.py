"""Client of the ReviewRelay API, and verification of its webhooks."""

from ._client import ReviewRelay
from ._errors import ApiError
from ._generated import Event, MinimalEvent
from ._oauth import OAuthToken, OAuthTokens
from ._requests import Pages
from ._verify import SignatureError, verify, verify_minimal

__all__ = [
    "ApiError",
    "Event",
    "MinimalEvent",
    "OAuthToken",
    "OAuthTokens",
    "Pages",
    "ReviewRelay",
    "SignatureError",
    "verify",
    "verify_minimal",
]
