/** What partners are told of trouble with their webhooks (contract 7.17), the gravest last, and that it has ended. */
export const TROUBLE_KINDS = [
  "head_retrying",
  "oldest_waiting",
  "failures_5",
  "failures_10",
  "failures_18",
  "disabled",
] as const;
export const ALERT_KINDS = [...TROUBLE_KINDS, "recovered"] as const;

export type TroubleKind = (typeof TROUBLE_KINDS)[number];
export type AlertKind = (typeof ALERT_KINDS)[number];

/** What holds for a partner that has set nothing: every kind, to its owners. */
export const ALERT_DEFAULTS = { oldestWaitingMinutes: 15, digestMinutes: 10 } as const;

/** `X-SVC-Event` of the POST that tells an alert. */
export const ALERT_EVENT = "webhook.alert";

/** What the secret of alerts is sealed for. */
export function alertSecretContext(partnerId: number, settingsId: string): string {
  return `alerts:${partnerId}:${settingsId}`;
}
