import { alerts } from "../../db/schema/alerts.ts";

/** Alerts about trouble with webhooks (contract 7.17), the gravest last, and behind them the one that it has ended. */
export const ALERT_KINDS = alerts.kind.enumValues;

export type AlertKind = (typeof ALERT_KINDS)[number];
export type TroubleKind = Exclude<AlertKind, "recovered">;

/** What holds for a partner that has set nothing: every kind, to its owners. */
export const ALERT_DEFAULTS = { oldestWaitingMinutes: 15, digestMinutes: 10 } as const;

/** `X-SVC-Event` of the POST that tells an alert. */
export const ALERT_EVENT = "webhook.alert";

/** What the secret of alerts is sealed for. */
export function alertSecretContext(partnerId: number, settingsId: string): string {
  return `alerts:${partnerId}:${settingsId}`;
}
