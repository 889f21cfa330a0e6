/**
 * Kinds of alerts about webhooks (contract 7.17), by ascending severity. `recovered` reports the end of an incident.
 */
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

/** Alert settings of partners that have not configured any: every kind of alert, mailed to the partner's owners. */
export const ALERT_DEFAULTS = { oldestWaitingMinutes: 15, digestMinutes: 10 } as const;

/** The value of `X-SVC-Event` in the POST that delivers an alert. */
export const ALERT_EVENT = "webhook.alert";

/** Returns the associated data with which the secret for alert POSTs is sealed. */
export function alertSecretAssociatedData(partnerId: number, settingsId: string): string {
  return `alerts:${partnerId}:${settingsId}`;
}
