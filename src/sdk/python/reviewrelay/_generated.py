# Written by scripts/sdk.ts from the OpenAPI document.
# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from ._requests import Pages, Requests, new_key, segment


class Login(TypedDict):
    email: str
    """An email address."""
    password: str
    """The password."""
    rememberMe: NotRequired[bool]
    """Accepted and ignored."""


class User(TypedDict):
    """A user."""
    id: int
    """The id."""
    email: str
    """An email address."""
    name: str
    """The name."""
    role: str
    """Role of the user."""
    company_id: int
    """Id of the company."""
    store_ids: list[int]
    """Ids of the stores that a location user may see."""


class Company(TypedDict):
    """The company that the user belongs to."""
    id: int
    """The id."""
    type: Literal["platform", "partner", "account"]
    """The type."""
    name: str
    """The name."""
    partner_id: int | None
    """Id of the partner."""


class Theme(TypedDict):
    """Branding of the pages."""
    primary_color: str
    """Primary colour of the pages."""
    logo_url: str | None
    """URL of the logo."""


class WhiteLabel(TypedDict):
    """Branding that replaces the platform's own."""
    enabled: bool
    """Whether it is enabled."""
    brand_name: str | None
    """Name shown instead of ReviewRelay."""
    domain: str | None
    """A domain name."""


class Plan(TypedDict):
    """The plan of an account."""
    id: int
    """The id."""
    name: str
    """The name."""
    features: list[str]
    """Features of the plan."""


class SessionContext(TypedDict):
    user: User
    company: Company
    theme: Theme
    white_label: WhiteLabel
    plan: NotRequired[Plan]


class PasswordSet(SessionContext):
    token: str
    """A token."""
    token_type: Literal["Bearer"]
    """`Bearer`."""
    expires_in: int
    """Seconds until expiry."""


class SignedIn(PasswordSet):
    location_count: int
    """Number of stores that the user may see."""


EmailAddress: TypeAlias = "str"


class VerifiedTokenImpersonationImpersonator(TypedDict):
    """The user who impersonates."""
    id: int
    """The id."""
    email: str
    """An email address."""
    name: str
    """The name."""
    company_id: int
    """Id of the company."""


class VerifiedTokenImpersonation(TypedDict):
    """The impersonator; absent without impersonation."""
    impersonator: VerifiedTokenImpersonationImpersonator
    """The user who impersonates."""


class VerifiedToken(SessionContext):
    impersonation: NotRequired[VerifiedTokenImpersonation]
    """The impersonator; absent without impersonation."""


class Page(TypedDict):
    """Fields of every page of a list."""
    next_cursor: str | None
    """Cursor of the next page; null on the last one."""


Scope: TypeAlias = "Literal['*', 'reviews:read', 'reviews:write', 'webhooks:read', 'webhooks:write', 'clients:write', 'impersonate']"


class ImpersonationInput(TypedDict):
    account_id: int
    """Id of the account."""
    reason: NotRequired[str]
    """Reason given by the user."""


class ImpersonationActingAs(TypedDict):
    """The account, its owner, on whose behalf the token acts, and the impersonator."""
    user_id: int
    """Id of the user."""
    account_id: int
    """Id of the account."""
    impersonator_id: int
    """Id of the user who impersonated."""


class Impersonation(TypedDict):
    access_token: str
    """The token to send as `Bearer`."""
    token_type: Literal["Bearer"]
    """`Bearer`."""
    expires_in: int
    """Seconds until expiry."""
    user: User
    company: Company
    acting_as: ImpersonationActingAs
    """The account, its owner, on whose behalf the token acts, and the impersonator."""


class OAuthClient(TypedDict):
    client_id: str
    """Id of the OAuth client."""
    name: str
    """The name."""
    redirect_uris: list[str]
    """Allowed redirect URIs."""
    confidential: bool
    """Whether the client can keep a secret."""
    scopes: list[str]
    """Scopes; `*` stands for all."""
    grant_types: list[str]
    """OAuth grant types that the client may use."""
    first_party: bool
    """Whether the client belongs to the platform itself."""
    require_pkce: bool
    """Whether the code flow requires PKCE; `true` by default, and always for a public client."""
    company_id: int | None
    """Id of the company."""
    created_at: str
    """Creation time."""
    updated_at: str
    """Time of the last change."""


class OAuthClientPage(Page):
    data: list[OAuthClient]
    """Rows of the page."""


RedirectUris: TypeAlias = "list[str]"


GrantTypes: TypeAlias = "list[Literal['password', 'refresh_token', 'authorization_code']]"


class OAuthClientInput(TypedDict):
    name: str
    """The name."""
    redirect_uris: NotRequired[RedirectUris]
    confidential: NotRequired[bool]
    """Whether the client can keep a secret."""
    scopes: NotRequired[list[Scope]]
    """Scopes; `*` stands for all."""
    grant_types: NotRequired[GrantTypes]
    first_party: NotRequired[bool]
    """Whether the client belongs to the platform itself."""
    require_pkce: NotRequired[bool]
    """Whether the code flow requires PKCE; `true` by default, and always for a public client."""


class OAuthClientWithSecret(OAuthClient):
    client_secret: str | None
    """Secret of the client; null for a public client."""


class OAuthClientUpdate(TypedDict):
    name: NotRequired[str]
    """The name."""
    redirect_uris: NotRequired[RedirectUris]
    scopes: NotRequired[list[Scope]]
    """Scopes; `*` stands for all."""
    grant_types: NotRequired[GrantTypes]
    first_party: NotRequired[bool]
    """Whether the client belongs to the platform itself."""
    require_pkce: NotRequired[bool]
    """Whether the code flow requires PKCE; `true` by default, and always for a public client."""


class SsoIdentity(TypedDict):
    id: int
    """The id."""
    connection_id: str
    """Id of the connection through which it was linked."""
    issuer: str
    """Issuer of the identity provider."""
    subject: str
    """The `sub` of the user at the provider."""
    linked_at: str
    """Time of the first sign-in with it."""


class SsoIdentityPage(Page):
    data: list[SsoIdentity]
    """Rows of the page."""


DisplayName: TypeAlias = "str"


class AccountPlan(TypedDict):
    """Plan of the account."""
    id: int
    """The id."""
    name: str
    """The name."""


class AccountStores(TypedDict):
    id: int
    """The id."""
    name: str
    """The name."""


class Account(TypedDict):
    id: int
    """The id."""
    name: str
    """The name."""
    is_active: bool
    """Whether it is active."""
    primary_color: str
    """Primary colour of the pages."""
    logo_url: str | None
    """URL of the logo."""
    require_second_factor: bool
    """Whether the company's own users need a second factor."""
    created_at: str
    """Creation time."""
    external_id: str | None
    """The platform's own id; null for none."""
    updated_at: str
    """Time of the last change."""
    partner_id: int | None
    """Id of the partner."""
    partner_name: str | None
    """Name of the partner."""
    plan: AccountPlan
    """Plan of the account."""
    store_ids: list[int]
    """Ids of the stores that a location user may see."""
    stores: list[AccountStores]
    """Stores of the account."""


class AccountPage(Page):
    data: list[Account]
    """Rows of the page."""


class CompanyName(TypedDict):
    """A company."""
    id: int
    """The id."""
    type: str
    """The type."""
    name: str
    """The name."""


class Store(TypedDict):
    id: int
    """The id."""
    name: str
    """The name."""
    account_id: int
    """Id of the account."""
    partner_id: int
    """Id of the partner."""
    external_id: str | None
    """The platform's own id; null for none."""
    updated_at: str
    """Time of the last change."""


class StorePage(Page):
    data: list[Store]
    """Rows of the page."""


class AdminUser(TypedDict):
    id: int
    """The id."""
    email: str
    """An email address."""
    name: str
    """The name."""
    role: str
    """Role of the user."""
    company_id: int
    """Id of the company."""
    company: CompanyName
    store_ids: list[int]
    """Ids of the stores that a location user may see."""
    is_active: bool
    """Whether it is active."""
    has_password: bool
    """Whether the user has set a password."""
    locked_until: str | None
    """End of the sign-in lock."""
    created_at: str
    """Creation time."""
    external_id: str | None
    """The platform's own id; null for none."""
    updated_at: str
    """Time of the last change."""


class AdminUserPage(Page):
    data: list[AdminUser]
    """Rows of the page."""


class AuditEntry(TypedDict):
    id: int
    """The id."""
    at: str
    """Time of occurrence."""
    action: str
    """Name of the audited action."""
    actor_id: int | None
    """Id of the user who acted."""
    actor_name: str | None
    """Name of the user who acted."""
    impersonator_id: int | None
    """Id of the user who impersonated."""
    impersonator_name: str | None
    """Name of the user who impersonated."""
    company_id: int | None
    """Id of the company."""
    company_name: str | None
    """Name of the company."""
    ip: str | None
    """IP address of the request."""
    user_agent: str | None
    """User agent of the request."""
    request_id: str | None
    """Id of the request."""
    details: dict[str, Any]
    """Further details of the action."""


class AuditEntryPage(Page):
    data: list[AuditEntry]
    """Rows of the page."""


class TeammateInput(TypedDict):
    email: EmailAddress
    name: DisplayName
    role: Literal["partner_owner", "partner_admin"]
    """Role of the user."""


class TeamRole(TypedDict):
    role: Literal["partner_owner", "partner_admin"]
    """Role of the user."""


class TeamSession(TypedDict):
    id: str
    """The id."""
    method: str
    """Method of the sign-in."""
    client_id: str | None
    """Id of the OAuth client."""
    ip: str | None
    """IP address of the request."""
    user_agent: str | None
    """User agent of the request."""
    created_at: str
    """Creation time."""
    last_used_at: str | None
    """Time of the latest use."""
    expires_at: str
    """Expiry time."""
    is_current: bool
    """Whether this request uses it."""
    user_id: int
    """Id of the user."""
    user_name: str
    """Name of the user."""


class TeamSessionPage(Page):
    data: list[TeamSession]
    """Rows of the page."""


class TeamTokenUses(TypedDict):
    route: str
    """Method and path."""
    ip: str
    """IP address of the request."""
    first_used_at: str
    """Time of the first use from this address."""
    last_used_at: str
    """Time of the latest use."""


class TeamToken(TypedDict):
    id: str
    """The id."""
    kind: str
    """`dashboard_pat`, `api_pat` or `impersonation`, which acts for an account's owner."""
    name: str | None
    """The name."""
    user_id: int
    """Id of the user."""
    user_name: str
    """Name of the user."""
    scopes: list[str]
    """Scopes; `*` stands for all."""
    created_at: str
    """Creation time."""
    expires_at: str | None
    """Expiry time."""
    last_used_at: str | None
    """Time of the latest use."""
    uses: list[TeamTokenUses]
    """The ten newest pairs of route and address."""


class TeamTokenPage(Page):
    data: list[TeamToken]
    """Rows of the page."""


class SecuritySettings(TypedDict):
    require_second_factor: bool
    """Whether the company's own users need a second factor."""


class SecurityChanges(TypedDict):
    require_second_factor: bool
    """Whether the company's own users need a second factor."""


DeliveryKind: TypeAlias = "Literal['immediate', 'batch']"


class Subscription(TypedDict):
    id: str
    """ULID."""
    label: str
    """Name chosen by the partner."""
    webhook_url: str
    """URL that receives the deliveries."""
    delivery_kind: DeliveryKind
    batch_interval_hours: int | None
    """Hours between batches."""
    events: list[str] | None
    """Event filter; null for all events."""
    payload_mode: Literal["full", "minimal"]
    """Full or minimal bodies."""
    suppress_native_notifications: bool
    """Whether the platform sends no mails of its own."""
    ordering: Literal["subscription", "review"]
    """Events that wait for a retry of an earlier event."""
    standard_webhooks: bool
    """Whether deliveries also carry the headers of Standard Webhooks."""
    is_active: bool
    """False while disabled."""
    consecutive_failure_count: int
    """Permanent failures in a row."""
    disabled_at: str | None
    """Time at which it was disabled."""
    disabled_reason: str | None
    """Reason why it was disabled."""
    disabled_note: str | None
    """The operator's reason; null unless `disabled_reason` is `operator`."""
    pending_test_event_id: str | None
    """Id of the test event whose response decides whether the subscription is enabled; null without one."""
    last_batch_dispatched_at: str | None
    """Time of the last batch."""
    next_batch_at: str | None
    """Time of the next batch."""
    secret_fingerprint: str
    """The first 8 bytes of the secret's SHA-256."""
    previous_secret_expires_at: str | None
    """End of the grace period of the previous secret; null without one."""
    created_at: str
    """Creation time."""
    updated_at: str
    """Time of the last change."""
    deleted_at: str | None
    """Time of deletion."""


class SubscriptionPage(Page):
    data: list[Subscription]
    """Rows of the page."""


class EventCatalogEvents(TypedDict):
    value: str
    """Event value."""
    category: str
    """Category of the event."""
    envelope: Literal["review", "site_connection"]
    """Shape of the body: `review` or `site_connection`."""
    description: str
    """Description of the event."""
    in_batch: bool
    """Whether batch subscriptions deliver it."""
    subscribable: bool
    """Whether an event filter may contain it."""
    schema: dict[str, Any]
    """JSON Schema of the full body."""
    example: dict[str, Any]
    """A full body."""


class EventCatalog(TypedDict):
    events: list[EventCatalogEvents]
    """The events."""
    batch_interval_hours: list[int]
    """Hours between batches."""


EventValue: TypeAlias = "Literal['review_received', 'review_updated', 'review_removed', 'profanity_detected', 'review_flagged', 'flag_status_changed', 'review_assigned', 'note_added', 'response_submitted', 'response_updated', 'response_deleted', 'homeowner_notified_of_response', 'response_post_succeeded', 'response_post_failed', 'review_pull_connected', 'review_pull_disconnected', 'response_post_connected', 'response_post_disconnected', 'webhook.test']"


EventId: TypeAlias = "str"


class Attempt(TypedDict):
    id: str
    """ULID."""
    event_id: EventId
    event: str
    """Event value."""
    attempt: int
    """Number of the attempt, 1 to 4, as in `X-SVC-Attempt`."""
    round: int
    """Number of the round, from 1. Each redelivery starts another round."""
    sequence: int
    """Position in the order of the subscription."""
    started_at: str
    """Start time."""
    duration_ms: int
    """Duration in milliseconds."""
    outcome: Literal["delivered", "retry", "failed", "interrupted"]
    """Result of the attempt."""
    status_code: int | None
    """HTTP status of the response; null without one."""
    error_code: str | None
    """Cause of the failure: http_status, timeout, dns, connect, tls, blocked_address, …"""
    tls_reason: str | None
    """Reason of a TLS failure: expired, wrong_name, chain_incomplete, …; null for other codes."""
    request_headers: dict[str, Any] | None
    """Exact headers that were sent; null if they cannot be reproduced."""
    request_body: str | None
    """The exact text that was sent and signed; null if it cannot be reproduced or was erased."""
    request_digest: str | None
    """The first 16 bytes of the SHA-256 of the body that was sent, in hex digits; null where the body itself is stored."""
    request_erased: bool
    """The body named a person whose data was erased, so it cannot be shown."""
    response_headers: dict[str, Any] | None
    """Headers of the response."""
    response_excerpt: str | None
    """Beginning of the response body."""
    response_truncated: bool
    """Whether the response body continues after the excerpt."""
    next_attempt_at: str | None
    """Time of the next attempt."""
    possibly_repeated: bool
    """A process that stopped unexpectedly may have sent the same attempt."""
    resent: bool
    """Sent twice because a reused connection closed before the first byte of a response."""


class AttemptPage(Page):
    data: list[Attempt]
    """Rows of the page."""


class Delivery(TypedDict):
    event_id: EventId
    event: str
    """Event value."""
    sequence: int
    """Position in the subscription's order."""
    state: Literal["pending", "waiting", "held", "delivered", "failed", "skipped"]
    """pending and waiting (for a retry): queued; held: queued while the subscription is disabled."""
    created_at: str
    """Creation time."""
    settled_at: str | None
    """Time at which it was delivered, failed or skipped."""
    attempts: list[Attempt]
    """Attempts of all rounds, oldest first."""


class AttemptSummary(TypedDict):
    id: str
    """ULID."""
    event_id: EventId
    event: str
    """Event value."""
    attempt: int
    """Number of the attempt, 1 to 4, as in `X-SVC-Attempt`."""
    round: int
    """Number of the round, from 1. Each redelivery starts another round."""
    sequence: int
    """Position in the order of the subscription."""
    started_at: str
    """Start time."""
    duration_ms: int
    """Duration in milliseconds."""
    outcome: Literal["delivered", "retry", "failed", "interrupted"]
    """Result of the attempt."""
    status_code: int | None
    """HTTP status of the response; null without one."""
    error_code: str | None
    """Cause of the failure: http_status, timeout, dns, connect, tls, blocked_address, …"""
    tls_reason: str | None
    """Reason of a TLS failure: expired, wrong_name, chain_incomplete, …; null for other codes."""
    next_attempt_at: str | None
    """Time of the next attempt."""
    possibly_repeated: bool
    """A process that stopped unexpectedly may have sent the same attempt."""
    resent: bool
    """Sent twice because a reused connection closed before the first byte of a response."""


class EventMessage(TypedDict):
    event_id: str
    """Id of the event, as in `X-SVC-Delivery`."""
    event: str
    """Event value."""
    sequence: int
    """Sequence number of its last round."""
    state: Literal["pending", "waiting", "held", "delivered", "failed", "skipped"]
    """State of the delivery's last round."""
    created_at: str
    """Creation time."""
    settled_at: str | None
    """Time at which it was delivered, failed or skipped."""
    review_id: int | None
    """Id of the review."""
    external_review_id: str | None
    """Id of the review at its site."""
    rate: int | None
    """Rating, 1 to 5 stars."""
    store_id: int | None
    """Id of the store."""
    store_name: str | None
    """Name of the store."""
    waiting_behind: int | None
    """Number of events, of the first 10,000, that wait behind it in its lane; null unless it waits for a retry."""
    attempts: list[AttemptSummary]
    """The newest 20 attempts, oldest first."""


class EventMessagePage(Page):
    data: list[EventMessage]
    """Rows of the page."""


class Latency(TypedDict):
    """Durations in milliseconds."""
    p50: float | None
    """50th percentile."""
    p95: float | None
    """95th percentile."""
    p99: float | None
    """99th percentile."""


class HealthQuarantined(TypedDict):
    reason: Literal["history_missing", "unreadable", "unrecordable", "secret_unreadable", "locked"]
    """Reason given by the user."""
    event_id: str | None
    """Id of the event, as in `X-SVC-Delivery`."""
    sequence: int | None
    """Position in the subscription's order."""
    review_id: int | None
    """Id of the review."""
    since: str
    """Start of the range, inclusive."""


class HealthFirstFailure(TypedDict):
    """First of the current consecutive permanent failures."""
    event_id: str
    """Id of the event, as in `X-SVC-Delivery`."""
    at: str
    """Time of occurrence."""
    status_code: int | None
    """HTTP status of the response; null without one."""
    error_code: str | None
    """Error code; null without an error."""
    tls_reason: str | None
    """Reason of a TLS failure: expired, wrong_name, chain_incomplete, …; null for other codes."""


class Health(TypedDict):
    condition: Literal["healthy", "degraded", "failing"] | None
    """How well deliveries work; null while the subscription is disabled."""
    pending: int
    """Queued events. Exact up to 10,000; above that each further sequence number counts as an event."""
    held: int
    """Queued events while the subscription is disabled."""
    oldest_pending_age_s: int | None
    """Age of the first queued event in seconds."""
    blocked_by: str | None
    """The event that waits for a retry and blocks later events."""
    blocked_since: str | None
    """Time at which that event began to block the queue."""
    blocked_attempts: int
    """Failed attempts of that event in this round; 0 without one."""
    last_success_at: str | None
    """Time of the latest attempt answered 2xx."""
    success_rate_1h: float | None
    """The share of attempts of the last hour answered 2xx; null without attempts."""
    success_rate_24h: float | None
    """The share of attempts answered 2xx; null without attempts."""
    latency_ms_24h: Latency
    expired_24h: int
    """Events dropped because they were held for longer than the retention time."""
    quarantined: list[HealthQuarantined]
    """Lanes that are quarantined because of a problem in this service."""
    outage_since: str | None
    """Start of an outage in which the service cannot reach receivers; null without one. Attempts wait and do not count as failures."""
    first_failure: HealthFirstFailure | None
    """First of the current consecutive permanent failures."""


class IncidentLastAnswer(TypedDict):
    """Result of the last failed attempt."""
    event_id: str
    """Id of the event, as in `X-SVC-Delivery`."""
    at: str
    """Time of occurrence."""
    status_code: int | None
    """HTTP status of the response; null without one."""
    error_code: str | None
    """Error code; null without an error."""
    tls_reason: str | None
    """Reason of a TLS failure: expired, wrong_name, chain_incomplete, …; null for other codes."""
    response_excerpt: str | None
    """Beginning of the response body."""


class IncidentCauses(TypedDict):
    status_code: int | None
    """HTTP status of the response; null without one."""
    error_code: str | None
    """Error code; null without an error."""
    tls_reason: str | None
    """Reason of a TLS failure: expired, wrong_name, chain_incomplete, …; null for other codes."""
    attempts: int
    """The attempts, oldest first; in statistics, their number."""
    first_at: str
    """Time of the first occurrence."""
    last_at: str
    """Time of the latest occurrence."""
    counts: list[int]
    """Failed attempts per step since `since`."""


class IncidentAlerts(TypedDict):
    kind: Literal["head_retrying", "oldest_waiting", "failures_5", "failures_10", "failures_18", "disabled", "recovered"]
    """Kind of alert."""
    raised_at: str
    """Time at which the alert was raised."""


class Incident(TypedDict):
    since: str | None
    """Time of the first failed attempt; null without an incident."""
    last_answer: IncidentLastAnswer | None
    """Result of the last failed attempt."""
    step: int
    """Seconds per count."""
    causes: list[IncidentCauses]
    """Causes of the last 1,000 failed attempts since then."""
    alerts: list[IncidentAlerts]
    """Alerts raised in this incident."""


class IncidentHistoryIncidents(TypedDict):
    id: str
    """The `incident_id` of its first alert."""
    began_at: str
    """Time of the first failed attempt."""
    ended_at: str
    """Time of the end."""
    ended_by: Literal["recovered", "enabled"]
    """How the incident ended: `enabled` if the subscription was enabled and no 2xx followed."""
    disabled_at: str | None
    """Time at which the subscription was disabled; null if it was not."""
    failed_attempts: int
    """Failed attempts, of which 1,000 of each outcome are counted."""
    status_code: int | None
    """HTTP status of the response; null without one."""
    error_code: str | None
    """Error code; null without an error."""
    tls_reason: str | None
    """Reason of a TLS failure: expired, wrong_name, chain_incomplete, …; null for other codes."""


class IncidentHistory(TypedDict):
    incidents: list[IncidentHistoryIncidents]
    """The newest first; `status_code` and `error_code` are the most frequent."""


class StatsPoints(TypedDict):
    at: str
    """Time of occurrence."""
    successes: int
    """Attempts answered 2xx."""
    failures: int
    """Attempts not answered 2xx."""
    latency_ms: Latency
    backlog: int
    """The most events that were queued at once, as sampled."""
    events: NotRequired[dict[str, Any]]
    """Attempts by event, with `by=event`; many are sampled."""


class Stats(TypedDict):
    since: str
    """Start of the range, inclusive."""
    until: str
    """End of the range, exclusive."""
    step: int
    """Length of a step in seconds."""
    points: list[StatsPoints]
    """One point per step."""


BatchInterval: TypeAlias = "Literal[1, 2, 4, 6, 8, 12, 24]"


EventFilter: TypeAlias = "list[Literal['review_received', 'review_updated', 'review_removed', 'profanity_detected', 'review_flagged', 'flag_status_changed', 'review_assigned', 'note_added', 'response_submitted', 'response_updated', 'response_deleted', 'homeowner_notified_of_response', 'response_post_succeeded', 'response_post_failed', 'review_pull_connected', 'review_pull_disconnected', 'response_post_connected', 'response_post_disconnected']] | None"


Ordering: TypeAlias = "Literal['subscription', 'review']"


class SubscriptionInput(TypedDict):
    label: str
    """Name chosen by the partner."""
    webhook_url: str
    """URL that receives the deliveries."""
    delivery_kind: DeliveryKind
    batch_interval_hours: NotRequired[BatchInterval | None]
    """Hours between batches; for batch only."""
    events: NotRequired[EventFilter]
    payload_mode: NotRequired[Literal["full", "minimal"]]
    """Full or minimal bodies; always `full` on batch."""
    suppress_native_notifications: NotRequired[bool]
    """Omits the platform's own mails about review actions; false on batch."""
    ordering: NotRequired[Ordering]
    standard_webhooks: NotRequired[bool]
    """Adds `webhook-id`, `webhook-timestamp` and `webhook-signature` of Standard Webhooks."""


class SubscriptionWithSecret(Subscription):
    secret: str
    """The key of the signatures. Use the text itself as the key; do not decode its digits."""
    standard_webhooks_secret: str | None
    """The same key in the form of Standard Webhooks: `whsec_` and base64. Null without `standard_webhooks`."""


class SubscriptionUpdate(TypedDict):
    label: NotRequired[str]
    """Name chosen by the partner."""
    webhook_url: NotRequired[str]
    """URL that receives the deliveries."""
    delivery_kind: NotRequired[DeliveryKind]
    batch_interval_hours: NotRequired[BatchInterval | None]
    """Hours between batches; for batch only."""
    events: NotRequired[EventFilter]
    payload_mode: NotRequired[Literal["full", "minimal"]]
    """Full or minimal bodies; always `full` on batch."""
    suppress_native_notifications: NotRequired[bool]
    """Omits the platform's own mails about review actions; false on batch."""
    ordering: NotRequired[Ordering]
    standard_webhooks: NotRequired[bool]
    """Adds `webhook-id`, `webhook-timestamp` and `webhook-signature` of Standard Webhooks."""


class SecretRotation(TypedDict):
    grace_period_hours: NotRequired[int]
    """Hours in which deliveries also have `X-SVC-Signature-Previous`, which is computed with the old secret."""


class Secret(TypedDict):
    secret: str
    """The key of the signatures. Use the text itself as the key; do not decode its digits."""
    secret_fingerprint: str
    """The first 8 bytes of the secret's SHA-256."""


class SubscriptionSecret(Secret):
    standard_webhooks_secret: str | None
    """The same key in the form of Standard Webhooks: `whsec_` and base64. Null without `standard_webhooks`."""


class Test(TypedDict):
    event: NotRequired[EventValue]


class QueuedEvent(TypedDict):
    event_id: EventId


class Enabling(TypedDict):
    held: NotRequired[Literal["deliver", "skip"]]
    """Whether events that were recorded while it was disabled are delivered or skipped."""
    test: NotRequired[bool]
    """Sends a test event first. The subscription is enabled only if the response is a 2xx."""


class EnabledSubscription(Subscription):
    test_event_id: NotRequired[str]
    """Id of the test event, if `test` was set."""


class Redelivery(TypedDict):
    event_ids: list[str]
    """The ids of the events, in the order of delivery."""


class RedeliveredEvents(TypedDict):
    queued: int
    """Number of events that this call queued."""


class Recovery(TypedDict):
    since: str
    """Start of the range, inclusive."""
    until: NotRequired[str]
    """End of the range, exclusive."""
    dry_run: NotRequired[bool]
    """Whether to only count the events and queue none."""


class RecoveredEvents(TypedDict):
    queued: int
    """Number of events that this call queued, or with `dry_run` would queue."""


class AlertSettings(TypedDict):
    recipients: list[str] | None
    """Recipients of mails; null for the partner's owners. Each address must be confirmed with a mailed link."""
    kinds: list[Literal["head_retrying", "oldest_waiting", "failures_5", "failures_10", "failures_18", "disabled", "recovered"]]
    """Kinds of alerts to send, by mail and by POST; `disabled` is always sent."""
    oldest_waiting_minutes: int
    """Minutes that an event may wait before `oldest_waiting` is raised."""
    digest_minutes: int
    """Minimum minutes between two mails. Mails about a disabled subscription are sent immediately."""
    webhook_url: str | None
    """URL that receives alerts."""
    unconfirmed_recipients: list[str]
    """Recipients that have not confirmed and get no mails yet."""
    secret_fingerprint: str | None
    """The first 8 bytes of the secret's SHA-256."""
    updated_at: str | None
    """Time of the last change."""


class AlertSettingsUpdate(TypedDict):
    recipients: NotRequired[list[str] | None]
    """Recipients of mails; null for the partner's owners. Each address must be confirmed with a mailed link."""
    kinds: NotRequired[list[Literal["head_retrying", "oldest_waiting", "failures_5", "failures_10", "failures_18", "disabled", "recovered"]]]
    """Kinds of alerts to send, by mail and by POST; `disabled` is always sent."""
    oldest_waiting_minutes: NotRequired[int]
    """Minutes that an event may wait before `oldest_waiting` is raised."""
    digest_minutes: NotRequired[int]
    """Minimum minutes between two mails. Mails about a disabled subscription are sent immediately."""
    webhook_url: NotRequired[str | None]
    """URL that receives alerts."""


class AlertSettingsWithSecret(AlertSettings):
    secret: str | None
    """Signing secret, if this request created one."""


class RecipientCode(TypedDict):
    code: str
    """The one-time code."""


class ConfirmedRecipient(TypedDict):
    email: str
    """The address that now receives the alerts."""


class PortalLinkInput(TypedDict):
    pages: list[str]
    """Pages: `webhooks`, or `webhooks/{id}` for one subscription."""
    access: NotRequired[Literal["read", "write"]]
    """Access; `read` by default."""
    theme: NotRequired[Literal["light", "dark"]]
    """Colour scheme; the browser's by default."""
    ttl_s: NotRequired[int]
    """Seconds in which the link works; 300 by default."""


class PortalLink(TypedDict):
    url: str
    """The link."""
    expires_at: str
    """Expiry time."""


class Embedding(TypedDict):
    origins: list[str]
    """Origins that may frame the portal."""


class ResponseInput(TypedDict):
    body: str
    """Text of the response or note."""


class ReviewResponse(TypedDict):
    body: str
    """Text of the response or note."""
    user_id: int | None
    """Id of the user."""
    responded_at: str | None
    """Time of the response."""


class ReviewFlag(TypedDict):
    status: str
    """Status of the flag."""
    reason: str | None
    """Reason given by the user."""


class Review(TypedDict):
    id: int
    """The id."""
    external_review_id: str
    """Id of the review at its site."""
    external_id: str | None
    """The platform's own id; null without one."""
    store_id: int
    """Id of the store."""
    store_review_site_id: int
    """Id of the store's connection to the review site."""
    review_site_id: int
    """Id of the review site."""
    source_platform: str
    """Slug of the review site."""
    rate: int
    """Rating, 1 to 5 stars."""
    reviewer: str | None
    """Name of the reviewer, if known."""
    content: str
    """Text of the review."""
    reviewed_at: str
    """Time at which the review was written."""
    removed_at: str | None
    """Time at which the review disappeared from its site; null if it has not."""
    response: ReviewResponse | None
    """The account's response."""
    flag: ReviewFlag | None
    """Latest flag of the review."""
    assigned_user_id: int | None
    """Id of the user to whom the review is assigned."""
    created_at: str
    """Creation time."""
    updated_at: str
    """Time of the last change."""


class FlagInput(TypedDict):
    reason: str
    """Reason given by the user."""


class FlagStatus(TypedDict):
    status: Literal["under_review", "accepted", "rejected", "withdrawn"]
    """Status of the flag."""


class Assignment(TypedDict):
    user_id: int
    """Id of the user."""


class NoteInput(TypedDict):
    body: str
    """Text of the response or note."""


class ReviewPage(Page):
    data: list[Review]
    """Rows of the page."""


class EventActor(TypedDict):
    """The user who acted, or the review site as `system`."""
    type: Literal["user", "system"]
    """The type."""
    id: int | None
    """The id."""
    name: str
    """The name."""


class ReviewWithHistoryHistory(TypedDict):
    id: int
    """The id."""
    event_id: str
    """Id of the event, as in `X-SVC-Delivery`."""
    event: str
    """Event value."""
    actor: EventActor
    metadata: dict[str, Any]
    """Data specific to the event."""
    occurred_at: str
    """Time of occurrence."""


class ReviewWithHistory(Review):
    history: list[ReviewWithHistoryHistory]
    """Recorded actions, oldest first."""


class Axis(TypedDict):
    """`pull` collects reviews, `post` posts responses."""
    connected: bool
    """Whether the connection works."""
    error_code: str | None
    """Error code; null without an error."""
    since: str | None
    """Time of the last change; null if it never changed."""


class StoreReviewSite(TypedDict):
    id: int
    """The id."""
    store_id: int
    """Id of the store."""
    store_name: str
    """Name of the store."""
    review_site_id: int
    """Id of the review site."""
    provider: str
    """Slug of the review site."""
    name: str
    """The name."""
    pull: Axis
    post: Axis


class StoreReviewSitePage(Page):
    data: list[StoreReviewSite]
    """Rows of the page."""


class Colleague(TypedDict):
    id: int
    """The id."""
    email: str
    """An email address."""
    name: str
    """The name."""
    role: str
    """Role of the user."""
    store_ids: list[int] | None
    """Ids of the stores that a location user may see."""


class ColleaguePage(Page):
    data: list[Colleague]
    """Rows of the page."""


class PartnerReview(Review):
    account_id: int
    """Id of the account."""


class PartnerReviewPage(Page):
    data: list[PartnerReview]
    """Rows of the page."""


class PartnerReviewWithHistoryHistory(TypedDict):
    id: int
    """The id."""
    event_id: str
    """Id of the event, as in `X-SVC-Delivery`."""
    event: str
    """Event value."""
    actor: EventActor
    metadata: dict[str, Any]
    """Data specific to the event."""
    occurred_at: str
    """Time of occurrence."""


class PartnerReviewWithHistory(PartnerReview):
    history: list[PartnerReviewWithHistoryHistory]
    """Recorded actions, oldest first."""


class EventReview(TypedDict):
    """The review at the time of the event."""
    id: int
    """The id."""
    external_review_id: str
    """Id of the review at its site."""
    store_id: int
    """Id of the store."""
    review_site_id: int
    """Id of the review site."""
    source_platform: str
    """Slug of the review site."""
    rate: int
    """Rating, 1 to 5 stars."""
    reviewer: str | None
    """Name of the reviewer, if known."""


class HistoryRow(TypedDict):
    id: int
    """The id."""
    event_id: str
    """Id of the event, as in `X-SVC-Delivery`."""
    event: str
    """Event value."""
    account_id: int
    """Id of the account."""
    store_id: int
    """Id of the store."""
    store_review_site_id: int
    """Id of the store's connection to the review site."""
    review_id: int | None
    """Id of the review."""
    actor: EventActor
    review: EventReview | None
    """The review at the time of the event; null for a site-connection event."""
    site: dict[str, Any] | None
    """`store` and `review_site` of a site-connection event; null for others."""
    metadata: dict[str, Any]
    """Data specific to the event."""
    is_imported: bool
    """Whether an import created it; no webhook was sent."""
    occurred_at: str
    """Time of occurrence."""
    recorded_at: str
    """Time at which it was recorded."""


class HistoryRowPage(Page):
    data: list[HistoryRow]
    """Rows of the page."""


class EventPartner(TypedDict):
    """The partner that receives the event."""
    id: int
    """The id."""


class ReviewEventBody(TypedDict):
    """Fields that all review events share."""
    event_id: EventId
    occurred_at: str
    """Time of occurrence."""
    delivered_at: str
    """Time of this attempt."""
    partner: EventPartner
    actor: EventActor
    review: EventReview


class TestMetadata(TypedDict):
    """Metadata of a test event."""
    test: bool
    """Always true."""


class ReviewReceivedEventMetadata(TypedDict):
    content: str
    """Text of the review."""
    reviewed_at: str
    """Time at which the review was written."""


class ReviewReceivedEvent(ReviewEventBody):
    """A review site reported a new review."""
    event: Literal["review_received"]
    """Event value."""
    metadata: ReviewReceivedEventMetadata | TestMetadata
    """Data specific to the event."""


class ReviewUpdatedEventMetadata(TypedDict):
    changed: list[str]
    """Names of the changed fields: rate, reviewer, content, reviewed_at."""
    content: str
    """Text of the review."""
    reviewed_at: str
    """Time at which the review was written."""
    restored: bool
    """Whether the review had been removed before."""


class ReviewUpdatedEvent(ReviewEventBody):
    """The reviewer changed the rating or the text of a review."""
    event: Literal["review_updated"]
    """Event value."""
    metadata: ReviewUpdatedEventMetadata | TestMetadata
    """Data specific to the event."""


class ReviewRemovedEvent(ReviewEventBody):
    """A review disappeared from its site."""
    event: Literal["review_removed"]
    """Event value."""
    metadata: dict[str, Any] | TestMetadata
    """Data specific to the event."""


class ProfanityDetectedEventMetadata(TypedDict):
    words: list[str]
    """Profane words that an earlier version did not contain."""


class ProfanityDetectedEvent(ReviewEventBody):
    """A new or changed review contains profanity."""
    event: Literal["profanity_detected"]
    """Event value."""
    metadata: ProfanityDetectedEventMetadata | TestMetadata
    """Data specific to the event."""


class ReviewFlaggedEventMetadata(TypedDict):
    reason: str
    """Reason given by the user."""


class ReviewFlaggedEvent(ReviewEventBody):
    """The account flagged a review."""
    event: Literal["review_flagged"]
    """Event value."""
    metadata: ReviewFlaggedEventMetadata | TestMetadata
    """Data specific to the event."""


FlagStatusChangedEventMetadata = TypedDict("FlagStatusChangedEventMetadata", {"from": Literal["open", "under_review", "accepted", "rejected", "withdrawn"], "to": Literal["open", "under_review", "accepted", "rejected", "withdrawn"], "native_email": Literal["queued", "suppressed", "no_address"]})


class FlagStatusChangedEvent(ReviewEventBody):
    """The status of a review's flag changed."""
    event: Literal["flag_status_changed"]
    """Event value."""
    metadata: FlagStatusChangedEventMetadata | TestMetadata
    """Data specific to the event."""


class ReviewAssignedEventMetadata(TypedDict):
    user_id: int
    """Id of the user."""


class ReviewAssignedEvent(ReviewEventBody):
    """A review was assigned to a user."""
    event: Literal["review_assigned"]
    """Event value."""
    metadata: ReviewAssignedEventMetadata | TestMetadata
    """Data specific to the event."""


class NoteAddedEventMetadata(TypedDict):
    body: str
    """Text of the response or note."""


class NoteAddedEvent(ReviewEventBody):
    """A user added an internal note to a review."""
    event: Literal["note_added"]
    """Event value."""
    metadata: NoteAddedEventMetadata | TestMetadata
    """Data specific to the event."""


class ResponseSubmittedEventMetadata(TypedDict):
    body: str
    """Text of the response or note."""


class ResponseSubmittedEvent(ReviewEventBody):
    """The account submitted its first response to a review."""
    event: Literal["response_submitted"]
    """Event value."""
    metadata: ResponseSubmittedEventMetadata | TestMetadata
    """Data specific to the event."""


class ResponseUpdatedEventMetadata(TypedDict):
    body: str
    """Text of the response or note."""


class ResponseUpdatedEvent(ReviewEventBody):
    """The account changed its response to a review."""
    event: Literal["response_updated"]
    """Event value."""
    metadata: ResponseUpdatedEventMetadata | TestMetadata
    """Data specific to the event."""


class ResponseDeletedEvent(ReviewEventBody):
    """The account deleted its response to a review."""
    event: Literal["response_deleted"]
    """Event value."""
    metadata: dict[str, Any] | TestMetadata
    """Data specific to the event."""


class HomeownerNotifiedOfResponseEventMetadata(TypedDict):
    native_email: Literal["queued", "suppressed", "no_address"]
    """Result of the platform's own mail."""


class HomeownerNotifiedOfResponseEvent(ReviewEventBody):
    """A posted response is announced to the reviewer by mail; metadata.native_email has the result of the mail."""
    event: Literal["homeowner_notified_of_response"]
    """Event value."""
    metadata: HomeownerNotifiedOfResponseEventMetadata | TestMetadata
    """Data specific to the event."""


class EventStore(TypedDict):
    """The store."""
    id: int
    """The id."""


class EventReviewSite(TypedDict):
    """The store's connection to the review site."""
    store_review_site_id: int
    """Id of the store's connection to the review site."""
    review_site_id: int
    """Id of the review site."""
    name: str
    """The name."""
    connection_status: Literal["connected", "disconnected"]
    """Status of the event's axis."""
    disconnect_reason: str | None
    """Error code; null if connected."""


class SiteEventBody(TypedDict):
    """Fields that all site-connection events share."""
    event_id: EventId
    occurred_at: str
    """Time of occurrence."""
    delivered_at: str
    """Time of this attempt."""
    partner: EventPartner
    store: EventStore
    review_site: EventReviewSite
    error_code: str | None
    """Error code; null without an error."""
    reason: str | None
    """Explanation for end users; null if connected."""


class PostingEvent(SiteEventBody):
    """The review site published a response, or failed to."""
    event: Literal["response_post_succeeded", "response_post_failed"]
    """Event value."""
    axis: Literal["post"]
    """`pull` collects reviews, `post` posts responses."""
    review_id: int
    """Id of the review."""
    review_history_id: int
    """Id of the row in the review history."""


class ConnectionEvent(SiteEventBody):
    """An axis of a review site was connected or disconnected."""
    event: Literal["review_pull_connected", "review_pull_disconnected", "response_post_connected", "response_post_disconnected"]
    """Event value."""
    axis: Literal["pull", "post"]
    """`pull` collects reviews, `post` posts responses."""


class WebhookTestEvent(ReviewEventBody):
    """A test that the partner requested; no filter applies to it."""
    event: Literal["webhook.test"]
    """Event value."""
    metadata: TestMetadata


Event: TypeAlias = "ReviewReceivedEvent | ReviewUpdatedEvent | ReviewRemovedEvent | ProfanityDetectedEvent | ReviewFlaggedEvent | FlagStatusChangedEvent | ReviewAssignedEvent | NoteAddedEvent | ResponseSubmittedEvent | ResponseUpdatedEvent | ResponseDeletedEvent | HomeownerNotifiedOfResponseEvent | PostingEvent | ConnectionEvent | WebhookTestEvent"


class EventReviewId(TypedDict):
    """The review."""
    id: int
    """The id."""


class MinimalReviewEvent(TypedDict):
    """Names the review to fetch again."""
    event: Literal["review_received", "review_updated", "review_removed", "profanity_detected", "review_flagged", "flag_status_changed", "review_assigned", "note_added", "response_submitted", "response_updated", "response_deleted", "homeowner_notified_of_response", "webhook.test"]
    """Event value."""
    event_id: EventId
    occurred_at: str
    """Time of occurrence."""
    partner: EventPartner
    review: EventReviewId
    review_history_id: int
    """Id of the row in the review history."""


class EventReviewSiteId(TypedDict):
    """The store's connection to the review site."""
    store_review_site_id: int
    """Id of the store's connection to the review site."""


class MinimalSiteEvent(TypedDict):
    """Names the connection, and the review of a posted response. `GET /partner/review-history?after=` with `review_history_id` minus 1 and `limit=1` returns the event."""
    event: Literal["response_post_succeeded", "response_post_failed", "review_pull_connected", "review_pull_disconnected", "response_post_connected", "response_post_disconnected"]
    """Event value."""
    event_id: EventId
    occurred_at: str
    """Time of occurrence."""
    partner: EventPartner
    store: EventStore
    review_site: EventReviewSiteId
    axis: Literal["pull", "post"]
    """`pull` collects reviews, `post` posts responses."""
    review: NotRequired[EventReviewId]
    review_history_id: int
    """Id of the row in the review history."""


MinimalEvent: TypeAlias = "MinimalReviewEvent | MinimalSiteEvent"


class Operations(Requests):
    """One method for each operation that partners and accounts use."""

    def sign_in(self, body: Login) -> SignedIn:
        """Sign in with email and password. Returns a token for one day. Five wrong passwords temporarily lock the email."""
        return self._send("POST", "/api/v1/login", body=body)

    def verify_token(self) -> VerifiedToken:
        """Show the user and company of the token. Returns current data, not the data at the time of issue."""
        return self._send("GET", "/api/v1/verify-token")

    def impersonate_account_owner(self, body: ImpersonationInput, *, idempotency_key: str | None = None) -> Impersonation:
        """Issue a token that acts as the owner of an account. For an account of the partner. The audit log names both users."""
        return self._send("POST", "/api/v1/partner/account-owner/token", body=body, key=idempotency_key or new_key())

    def list_oauth_clients_of_partner(self, *, limit: int | None = None, cursor: str | None = None) -> Pages[OAuthClient]:
        """List OAuth clients of the partner. Newest first."""
        return self._pages("/api/v1/partner/oauth-clients", query={"limit": limit, "cursor": cursor})

    def create_oauth_client_of_partner(self, body: OAuthClientInput, *, idempotency_key: str | None = None) -> OAuthClientWithSecret:
        """Create an OAuth client of the partner. The secret is shown here once and cannot be retrieved later."""
        return self._send("POST", "/api/v1/partner/oauth-clients", body=body, key=idempotency_key or new_key())

    def get_oauth_client_of_partner(self, id: str | int) -> OAuthClient:
        """Get an OAuth client of the partner. The secret is not returned."""
        return self._send("GET", f"/api/v1/partner/oauth-clients/{segment(id)}")

    def update_oauth_client_of_partner(self, id: str | int, body: OAuthClientUpdate) -> OAuthClient:
        """Update an OAuth client of the partner. Send only the fields to change."""
        return self._send("POST", f"/api/v1/partner/oauth-clients/{segment(id)}", body=body)

    def delete_oauth_client_of_partner(self, id: str | int) -> None:
        """Delete an OAuth client of the partner. Its tokens stop working immediately."""
        return self._send("DELETE", f"/api/v1/partner/oauth-clients/{segment(id)}")

    def rotate_secret_of_oauth_client_of_partner(self, id: str | int) -> OAuthClientWithSecret:
        """Rotate the secret of an OAuth client of the partner. The old secret stops working immediately."""
        return self._send("POST", f"/api/v1/partner/oauth-clients/{segment(id)}/secret")

    def list_teammate_identities(self, id: str | int, *, limit: int | None = None, cursor: str | None = None) -> Pages[SsoIdentity]:
        """List the identities of a partner's user at identity providers, newest first. The user signs in with each of them by single sign-on."""
        return self._pages(f"/api/v1/partner/users/{segment(id)}/identities", query={"limit": limit, "cursor": cursor})

    def unlink_teammate_identity(self, id: str | int, identity_id: str | int) -> None:
        """Unlink a partner's user from an identity. Ends the user's sessions from single sign-on. The next sign-in with a verified address links an identity again."""
        return self._send("DELETE", f"/api/v1/partner/users/{segment(id)}/identities/{segment(identity_id)}")

    def list_team(self, *, limit: int | None = None, cursor: str | None = None, is_active: Literal["true", "false"] | None = None) -> Pages[AdminUser]:
        """List the partner's own users, newest first. Excludes the users of its accounts."""
        return self._pages("/api/v1/partner/users", query={"limit": limit, "cursor": cursor, "is_active": is_active})

    def invite_teammate(self, body: TeammateInput, *, idempotency_key: str | None = None) -> AdminUser:
        """Invite a user to the partner. The mail has a link to a password form or to single sign-on."""
        return self._send("POST", "/api/v1/partner/users", body=body, key=idempotency_key or new_key())

    def set_team_role(self, id: str | int, body: TeamRole) -> AdminUser:
        """Change the role of a user of the partner. The new role applies from the next request on."""
        return self._send("POST", f"/api/v1/partner/users/{segment(id)}/role", body=body)

    def invite_teammate_again(self, id: str | int) -> AdminUser:
        """Send another invitation. Earlier links stop working."""
        return self._send("POST", f"/api/v1/partner/users/{segment(id)}/invite")

    def deactivate_teammate(self, id: str | int) -> AdminUser:
        """Deactivate a user of the partner. Revokes all tokens of the user immediately."""
        return self._send("POST", f"/api/v1/partner/users/{segment(id)}/deactivate")

    def activate_teammate(self, id: str | int) -> AdminUser:
        """Activate a user of the partner again. Earlier tokens stay revoked."""
        return self._send("POST", f"/api/v1/partner/users/{segment(id)}/activate")

    def list_own_accounts(self, *, limit: int | None = None, cursor: str | None = None, name: DisplayName | None = None, is_active: Literal["true", "false"] | None = None, updated_since: str | None = None) -> Pages[Account]:
        """List the partner's accounts, newest first. Includes their stores."""
        return self._pages("/api/v1/partner/accounts", query={"limit": limit, "cursor": cursor, "name": name, "is_active": is_active, "updated_since": updated_since})

    def list_own_stores(self, *, limit: int | None = None, cursor: str | None = None, account_id: int | None = None, updated_since: str | None = None) -> Pages[Store]:
        """List the partner's stores, newest first. `account_id` restricts the list to one account."""
        return self._pages("/api/v1/partner/stores", query={"limit": limit, "cursor": cursor, "account_id": account_id, "updated_since": updated_since})

    def list_own_audit_log(self, *, limit: int | None = None, cursor: str | None = None, action: str | None = None, category: Literal["sign_in", "tokens", "webhooks", "users", "platform"] | None = None, q: str | None = None, actor_id: int | None = None, company_id: int | None = None, since: str | None = None, until: str | None = None) -> Pages[AuditEntry]:
        """List the audit log of the partner and its accounts, newest first. `company_id` restricts the list to one company. For a company outside of the partner the list is empty."""
        return self._pages("/api/v1/partner/audit-log", query={"limit": limit, "cursor": cursor, "action": action, "category": category, "q": q, "actor_id": actor_id, "company_id": company_id, "since": since, "until": until})

    def list_team_sessions(self, *, limit: int | None = None, cursor: str | None = None) -> Pages[TeamSession]:
        """List the active sign-ins of the partner's users, newest first. Sign-ins that have a valid token."""
        return self._pages("/api/v1/partner/sessions", query={"limit": limit, "cursor": cursor})

    def end_team_session(self, id: str | int) -> None:
        """End a sign-in of a user of the partner. Its tokens, and all tokens created with them, stop working immediately."""
        return self._send("DELETE", f"/api/v1/partner/sessions/{segment(id)}")

    def list_team_tokens(self, *, limit: int | None = None, cursor: str | None = None) -> Pages[TeamToken]:
        """List the tokens of the partner's users, newest first. Lists tokens that do not belong to a sign-in, with their recent uses."""
        return self._pages("/api/v1/partner/tokens", query={"limit": limit, "cursor": cursor})

    def end_team_token(self, id: str | int) -> None:
        """Revoke a token of a user of the partner. Owners may revoke all tokens, admins their own. Tokens created with the token are revoked, too."""
        return self._send("DELETE", f"/api/v1/partner/tokens/{segment(id)}")

    def get_own_security(self) -> SecuritySettings:
        """Show the security settings of the partner. Only for its owners."""
        return self._send("GET", "/api/v1/partner/security")

    def update_own_security(self, body: SecurityChanges) -> SecuritySettings:
        """Require a second factor for the users of the partner. Current sessions stay active, but are not fresh."""
        return self._send("PATCH", "/api/v1/partner/security", body=body)

    def list_subscriptions(self, *, limit: int | None = None, cursor: str | None = None) -> Pages[Subscription]:
        """List subscriptions. Newest first, without deleted ones."""
        return self._pages("/api/v1/partner/webhooks", query={"limit": limit, "cursor": cursor})

    def create_subscription(self, body: SubscriptionInput, *, idempotency_key: str | None = None) -> SubscriptionWithSecret:
        """Create a subscription. A partner has one immediate and one batch subscription. The response has the signing secret."""
        return self._send("POST", "/api/v1/partner/webhooks", body=body, key=idempotency_key or new_key())

    def list_events(self) -> EventCatalog:
        """List event values and batch intervals. Each event has the JSON Schema of its full body and an example."""
        return self._send("GET", "/api/v1/partner/webhooks/events")

    def get_subscription(self, id: str | int) -> Subscription:
        """Get a subscription. The secret is not returned."""
        return self._send("GET", f"/api/v1/partner/webhooks/{segment(id)}")

    def delete_subscription(self, id: str | int) -> None:
        """Delete a subscription. Queued events are not sent. You can create another subscription of this kind immediately."""
        return self._send("DELETE", f"/api/v1/partner/webhooks/{segment(id)}")

    def update_subscription(self, id: str | int, body: SubscriptionUpdate) -> Subscription:
        """Update a subscription. Send only the fields to change. `delivery_kind` may be sent unchanged. URL, ordering and `standard_webhooks` apply from the next attempt on; filter and payload mode apply to events recorded from now on. Changing the URL requires a fresh session."""
        return self._send("POST", f"/api/v1/partner/webhooks/{segment(id)}", body=body)

    def list_attempts(self, id: str | int, *, limit: int | None = None, cursor: str | None = None, event: EventValue | None = None, event_id: str | None = None, outcome: Literal["delivered", "retry", "failed", "interrupted"] | None = None, since: str | None = None, until: str | None = None) -> Pages[Attempt]:
        """List delivery attempts. Newest first."""
        return self._pages(f"/api/v1/partner/webhooks/{segment(id)}/deliveries", query={"limit": limit, "cursor": cursor, "event": event, "event_id": event_id, "outcome": outcome, "since": since, "until": until})

    def get_delivery(self, id: str | int, event_id: str | int) -> Delivery:
        """Get one delivery with its attempts. Shows the exact body and headers of each attempt and the beginning of the response."""
        return self._send("GET", f"/api/v1/partner/webhooks/{segment(id)}/deliveries/{segment(event_id)}")

    def list_messages(self, id: str | int, *, limit: int | None = None, cursor: str | None = None, review_id: int | None = None, external_review_id: str | None = None, event: Literal["review_received", "review_updated", "review_removed", "profanity_detected", "review_flagged", "flag_status_changed", "review_assigned", "note_added", "response_submitted", "response_updated", "response_deleted", "homeowner_notified_of_response", "response_post_succeeded", "response_post_failed", "review_pull_connected", "review_pull_disconnected", "response_post_connected", "response_post_disconnected", "webhook.test"] | None = None, event_id: str | None = None, state: Literal["pending", "waiting", "held", "delivered", "failed", "skipped"] | None = None, outcome: Literal["delivered", "retry", "failed", "interrupted", "not_delivered"] | None = None, status: str | None = None, q: str | None = None, since: str | None = None, until: str | None = None) -> Pages[EventMessage]:
        """List deliveries with their attempts. One row per event, ordered by the newest matching attempt, newest first. A page may have fewer rows than its limit and still a `next_cursor`, because one call reads a limited number of attempts. `q` searches the error code and the beginning of the response."""
        return self._pages(f"/api/v1/partner/webhooks/{segment(id)}/messages", query={"limit": limit, "cursor": cursor, "review_id": review_id, "external_review_id": external_review_id, "event": event, "event_id": event_id, "state": state, "outcome": outcome, "status": status, "q": q, "since": since, "until": until})

    def get_health(self, id: str | int) -> Health:
        """Show the health of a subscription. Shows current figures and figures of the last 24 hours."""
        return self._send("GET", f"/api/v1/partner/webhooks/{segment(id)}/health")

    def get_incident(self, id: str | int) -> Incident:
        """Show the current incident: its start, causes and alerts. `since` is null without an incident."""
        return self._send("GET", f"/api/v1/partner/webhooks/{segment(id)}/incident")

    def list_incidents(self, id: str | int) -> IncidentHistory:
        """List past incidents. The newest 50 incidents within the retention time, without the current one."""
        return self._send("GET", f"/api/v1/partner/webhooks/{segment(id)}/incidents")

    def get_stats(self, id: str | int, *, since: str | None = None, until: str | None = None, step: int | None = None, by: Literal["event"] | None = None) -> Stats:
        """Show statistics of deliveries over time. Returns one point per step and extends the range to whole steps. Default: the last day in steps of an hour."""
        return self._send("GET", f"/api/v1/partner/webhooks/{segment(id)}/stats", query={"since": since, "until": until, "step": step, "by": by})

    def rotate_secret(self, id: str | int, body: SecretRotation | None = None) -> SubscriptionWithSecret:
        """Rotate the signing secret. All following attempts are signed with the new secret. Sessions of an operator's portal link are rejected. During a grace period, deliveries also carry `X-SVC-Signature-Previous`, which is computed with the previous secret."""
        return self._send("POST", f"/api/v1/partner/webhooks/{segment(id)}/rotate-secret", body=body or {})

    def end_previous_secret(self, id: str | int) -> None:
        """End the grace period of a rotation. From the next attempt on, deliveries have `X-SVC-Signature` only."""
        return self._send("DELETE", f"/api/v1/partner/webhooks/{segment(id)}/previous-secret")

    def show_secret(self, id: str | int) -> SubscriptionSecret:
        """Show the current secret. Each request is recorded in the audit log. Sessions of an operator's portal link are rejected."""
        return self._send("POST", f"/api/v1/partner/webhooks/{segment(id)}/secret")

    def send_test(self, id: str | int, body: Test | None = None) -> QueuedEvent:
        """Send a test event. Queues `event` with sample values, or a `webhook.test` if `event` is absent. The test is signed, retried and recorded like other events, is sent independently of them, and has the header `X-SVC-Test: 1`."""
        return self._send("POST", f"/api/v1/partner/webhooks/{segment(id)}/test", body=body or {})

    def enable_subscription(self, id: str | int, body: Enabling | None = None) -> EnabledSubscription:
        """Enable a disabled subscription. Resets the count of failures to 0. Held events are delivered in order, or skipped, as `held` says. With `test`, a test event is sent first: a 2xx response enables the subscription, any other result leaves it disabled."""
        return self._send("POST", f"/api/v1/partner/webhooks/{segment(id)}/enable", body=body or {})

    def disable_subscription(self, id: str | int) -> Subscription:
        """Disable a subscription. Nothing is sent until it is enabled. Queued events are held and queued tests are skipped. Raises no alert."""
        return self._send("POST", f"/api/v1/partner/webhooks/{segment(id)}/disable")

    def redeliver(self, id: str | int, event_id: str | int) -> QueuedEvent:
        """Deliver an event again. Adds the event to the end of the queue, with the same `X-SVC-Delivery`, as a new round of up to four attempts."""
        return self._send("POST", f"/api/v1/partner/webhooks/{segment(id)}/deliveries/{segment(event_id)}/redeliver")

    def redeliver_events(self, id: str | int, body: Redelivery) -> RedeliveredEvents:
        """Deliver several events again. In the order of `event_ids`, each as a new round. Events that are unknown or already queued are ignored."""
        return self._send("POST", f"/api/v1/partner/webhooks/{segment(id)}/redeliver", body=body)

    def recover(self, id: str | int, body: Recovery) -> RecoveredEvents:
        """Queue the undelivered events of a period again. Queues all events that were recorded from `since` to `until` (default: now) and are neither delivered nor queued, in order. A call queues at most 10,000 events; repeat it until it returns 0. With `dry_run` it returns 200 and the number of events that it would queue."""
        return self._send("POST", f"/api/v1/partner/webhooks/{segment(id)}/recover", body=body)

    def get_alerts(self) -> AlertSettings:
        """Show the alert settings. Returns the defaults until they are changed."""
        return self._send("GET", "/api/v1/partner/alerts")

    def update_alerts(self, body: AlertSettingsUpdate) -> AlertSettingsWithSecret:
        """Change the alert settings. Send only the fields to change. The first `webhook_url` creates a secret. Changing `webhook_url` or `recipients` requires a fresh session."""
        return self._send("PATCH", "/api/v1/partner/alerts", body=body)

    def rotate_alert_secret(self) -> AlertSettingsWithSecret:
        """Rotate the secret of alerts. Takes effect immediately, without a grace period."""
        return self._send("POST", "/api/v1/partner/alerts/rotate-secret")

    def show_alert_secret(self) -> Secret:
        """Show the secret of alerts. Each request is recorded in the audit log."""
        return self._send("POST", "/api/v1/partner/alerts/secret")

    def confirm_alert_recipient(self, body: RecipientCode) -> ConfirmedRecipient:
        """Confirm a recipient of alerts. Requires the code of the mailed link, which is valid for seven days."""
        return self._send("POST", "/api/v1/alert-recipients/confirm", body=body)

    def create_portal_link(self, body: PortalLinkInput, *, idempotency_key: str | None = None) -> PortalLink:
        """Create a portal link. The link opens webhook pages in a window or in a frame."""
        return self._send("POST", "/api/v1/partner/portal-links", body=body, key=idempotency_key or new_key())

    def get_embedding(self) -> Embedding:
        """List the origins that may frame the portal. Empty by default."""
        return self._send("GET", "/api/v1/partner/embedding")

    def update_embedding(self, body: Embedding) -> Embedding:
        """Set the origins that may frame the portal. Origins are https, or http on localhost. Changing them requires a fresh session."""
        return self._send("PATCH", "/api/v1/partner/embedding", body=body)

    def respond(self, id: str | int, body: ResponseInput) -> Review:
        """Submit or change the response to a review. The first call submits the response, a later one changes it; the review site posts it."""
        return self._send("POST", f"/api/v1/account/reviews/{segment(id)}/response", body=body)

    def delete_response(self, id: str | int) -> Review:
        """Delete the response to a review. A response that the review site has already posted is not withdrawn there."""
        return self._send("DELETE", f"/api/v1/account/reviews/{segment(id)}/response")

    def flag_review(self, id: str | int, body: FlagInput) -> Review:
        """Flag a review for a check. A review has one open flag."""
        return self._send("POST", f"/api/v1/account/reviews/{segment(id)}/flag", body=body)

    def move_flag(self, id: str | int, body: FlagStatus) -> Review:
        """Move the flag of a review to another status. All but `under_review` close it; the present status again has no effect."""
        return self._send("POST", f"/api/v1/account/reviews/{segment(id)}/flag-status", body=body)

    def assign_review(self, id: str | int, body: Assignment) -> Review:
        """Assign a review to a user. The user must be active and see the review's store. Assigning it to the present assignee changes nothing."""
        return self._send("POST", f"/api/v1/account/reviews/{segment(id)}/assign", body=body)

    def add_note(self, id: str | int, body: NoteInput) -> Review:
        """Add an internal note to a review. The note is part of the review's history, and of nothing that the reviewer sees."""
        return self._send("POST", f"/api/v1/account/reviews/{segment(id)}/notes", body=body)

    def list_reviews(self, *, limit: int | None = None, cursor: str | None = None, external_review_id: str | None = None, q: str | None = None, store_id: int | None = None, rate: int | None = None, source_platform: str | None = None, assigned_user_id: int | None = None, responded: Literal["true", "false"] | None = None, flag_status: Literal["open", "under_review", "accepted", "rejected", "withdrawn"] | None = None) -> Pages[Review]:
        """List reviews. Newest first, from the stores of the user. `q` searches review, reviewer and response."""
        return self._pages("/api/v1/account/reviews", query={"limit": limit, "cursor": cursor, "external_review_id": external_review_id, "q": q, "store_id": store_id, "rate": rate, "source_platform": source_platform, "assigned_user_id": assigned_user_id, "responded": responded, "flag_status": flag_status})

    def get_review(self, id: str | int) -> ReviewWithHistory:
        """Get a review with its history. The history is oldest first."""
        return self._send("GET", f"/api/v1/account/reviews/{segment(id)}")

    def list_review_sites(self, *, limit: int | None = None, cursor: str | None = None) -> Pages[StoreReviewSite]:
        """List the stores' review sites and the state of their connections. Lists only the stores of the user."""
        return self._pages("/api/v1/account/review-sites", query={"limit": limit, "cursor": cursor})

    def list_colleagues(self, *, limit: int | None = None, cursor: str | None = None, store_id: int | None = None) -> Pages[Colleague]:
        """List the account's active users. Reviews can be assigned to these users."""
        return self._pages("/api/v1/account/users", query={"limit": limit, "cursor": cursor, "store_id": store_id})

    def list_partner_reviews(self, *, limit: int | None = None, cursor: str | None = None, updated_since: str | None = None) -> Pages[PartnerReview]:
        """List the reviews of all accounts. In the order of `updated_at`. A review that changes during the listing appears again later."""
        return self._pages("/api/v1/partner/reviews", query={"limit": limit, "cursor": cursor, "updated_since": updated_since})

    def get_partner_review(self, id: str | int) -> PartnerReviewWithHistory:
        """Get a review of one of the accounts, with its history. `id` is the review id in webhooks. The history is oldest first."""
        return self._send("GET", f"/api/v1/partner/reviews/{segment(id)}")

    def list_partner_history(self, *, limit: int | None = None, cursor: str | None = None, after: int | None = None, since: str | None = None) -> Pages[HistoryRow]:
        """List the history of all accounts, oldest first. In the order of `id`. New rows always come after the rows that were already listed. Store the last `id` and continue with `after` to get every event."""
        return self._pages("/api/v1/partner/review-history", query={"limit": limit, "cursor": cursor, "after": after, "since": since})
