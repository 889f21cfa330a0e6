import { useNow } from "./use-time.ts";

const TICK_MS = 1_000;

/**
 * Counts down to an instant, to the second. Screen readers say it only where they look, because it changes all the
 * time.
 */
export function Countdown({ to }: { readonly to: string }) {
  const seconds = Math.round((Date.parse(to) - useNow(TICK_MS)) / 1_000);
  return (
    <time dateTime={to} role="timer" className="tabular">
      {seconds <= 0 ? "any moment now" : `in ${inWords(seconds)}`}
    </time>
  );
}

function inWords(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  const rest = seconds % 60;
  if (minutes === 0) return `${rest} s`;
  if (minutes < 60) return `${minutes} min ${rest} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
