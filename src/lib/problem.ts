/**
 * Every error code of the API under `{base_url}`, with its status and message (contract 2.5). The message is written
 * for people; programs use the code.
 */
const PROBLEMS = {
  invalid_json: [400, "The request body is not valid JSON."],
  invalid_host: [
    400,
    "The request must have exactly one Host header, with a host name or an address.",
  ],
  invalid_code: [400, "The code is invalid, expired or already used."],
  unauthenticated: [401, "Unauthenticated."],
  invalid_credentials: [401, "These credentials do not match our records."],
  second_factor_required: [
    401,
    "A second factor is required. Continue with the challenge token at POST /login/second-factor.",
  ],
  invalid_signature: [401, "The signature does not match the request body."],
  forbidden: [403, "This action is not allowed for your user."],
  step_up_required: [
    403,
    "Prove a second factor first, with POST /account/second-factors/step-up. If you have none, sign in again.",
  ],
  insufficient_scope: [403, "The token lacks the scope that this action needs."],
  not_found: [404, "Not found."],
  method_not_allowed: [405, "This path does not support the method."],
  slot_occupied: [
    409,
    "A subscription with this delivery_kind already exists; update or delete it.",
  ],
  not_invitable: [409, "Only an active user without a password can be invited."],
  no_password: [409, "Only an active user with a password can reset it."],
  token_exists: [409, "You already have a token; regenerate it or delete it."],
  limit_reached: [409, "The limit is reached; delete a record first."],
  subscription_disabled: [409, "The subscription is disabled; enable it first."],
  disabled_by_operator: [
    409,
    "An operator of the platform disabled the subscription; only an operator can enable or delete it.",
  ],
  company_inactive: [409, "The company is deactivated; activate it first."],
  request_unfinished: [
    409,
    "An earlier request with this Idempotency-Key has not finished. If this persists, check whether it created the record.",
  ],
  in_use: [409, "The record cannot be deleted, because other records depend on it."],
  already_queued: [409, "The event is already queued."],
  flag_open: [409, "The review already has an open flag."],
  no_open_flag: [409, "The review has no open flag."],
  no_response: [409, "The review has no response."],
  review_removed: [409, "The review was removed from its site."],
  no_owner: [409, "The partner has no active owner."],
  last_owner: [409, "This is the last active owner; make someone else an owner first."],
  user_erased: [409, "The user was erased and stays so."],
  own_user: [409, "You cannot erase your own user; ask another operator."],
  company_active: [409, "The company is active; deactivate it first."],
  deletion_requested: [409, "The company is scheduled for deletion; cancel the deletion first."],
  deletion_running: [409, "The deletion of the company has begun and cannot be cancelled."],
  last_factor: [409, "Your company requires a second factor; add another one first."],
  no_second_factor: [409, "Add a second factor to your own account first."],
  last_super_admin: [409, "The last active super-admin cannot be deactivated."],
  payload_too_large: [413, "The request body is too large."],
  unsupported_media_type: [415, "The request body must be application/json."],
  validation_failed: [422, "The request has invalid fields."],
  account_locked: [429, "Too many wrong passwords; sign-in is temporarily locked."],
  rate_limited: [429, "Too many requests."],
  internal_error: [500, "Something went wrong on our side."],
  overloaded: [503, "The service is overloaded; try again in a few seconds."],
  unavailable: [503, "A database is unavailable; try again in a few seconds."],
  outcome_unknown: [
    503,
    "The response of the database was lost, so the request may have been carried out. Check its result before you repeat it, or repeat it with the same Idempotency-Key.",
  ],
} as const satisfies Record<string, readonly [number, string]>;

export type ProblemCode = keyof typeof PROBLEMS;
/** Messages about invalid fields by field path; `_` stands for the body as a whole. */
export type FieldErrors = Record<string, string[]>;

/** An error response. It is thrown where no caller below the HTTP edge can handle it, and the edge renders it. */
export abstract class HttpError extends Error {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    message: string,
    { status, headers = {} }: { status: number; headers?: Readonly<Record<string, string>> },
  ) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

interface ProblemDetail {
  readonly errors?: FieldErrors;
  /** Members of the body in addition to those of every error. */
  readonly members?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly message?: string;
}

/** An error response under `{base_url}`, in the format of RFC 9457. */
export class Problem extends HttpError {
  override readonly name = "Problem";
  readonly code: ProblemCode;
  readonly errors: FieldErrors | undefined;
  readonly members: Readonly<Record<string, unknown>> | undefined;

  constructor(code: ProblemCode, { errors, headers = {}, members, message }: ProblemDetail = {}) {
    const [status, text] = PROBLEMS[code];
    super(message ?? text, { status, headers });
    this.code = code;
    this.errors = errors;
    this.members = members;
  }
}

/** Value of `Retry-After`, in seconds, in the 503 for a database or a lock that is not available. */
const RETRY_AFTER_S = 2;

/** Creates the error for a database or a lock that was not available in time. Nothing was committed (contract 2.10). */
export function unavailable(): Problem {
  return new Problem("unavailable", { headers: { "Retry-After": String(RETRY_AFTER_S) } });
}

export function invalid(errors: FieldErrors): Problem {
  return new Problem("validation_failed", { errors });
}
