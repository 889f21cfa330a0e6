import { Figure } from "../../ui/figure.tsx";
import { Time } from "../../ui/time.tsx";
import { duration, number } from "../../ui/words.ts";
import type { Health } from "./model.ts";

const PERCENT = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 });
/** The API counts no further. */
const COUNTED_TO = 100_000;

export function HealthFigures({
  health,
  isActive,
}: {
  readonly health: Health;
  readonly isActive: boolean;
}) {
  const { success_rate_24h: rate, oldest_pending_age_s: age, pending, held } = health;
  return (
    <dl className="figure-grid">
      <Figure name="Success, 24 h" hint={rate === null ? "No attempts yet" : "of all attempts"}>
        {rate === null ? "–" : PERCENT.format(rate)}
      </Figure>
      <Figure name={isActive ? "Pending" : "Held"} hint="events in the queue">
        {queued(isActive ? pending : held)}
      </Figure>
      <Figure name="Oldest in queue" hint={age === null ? "Nothing waits" : "since it happened"}>
        {age === null ? "–" : duration(age)}
      </Figure>
      <Figure name="Last success">
        {health.last_success_at === null ? "Never" : <Time at={health.last_success_at} />}
      </Figure>
    </dl>
  );
}

export const queued = (count: number): string =>
  count >= COUNTED_TO ? `${number(COUNTED_TO)}+` : number(count);
