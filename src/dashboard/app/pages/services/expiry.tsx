import { Tag } from "../../ui/badges.tsx";
import { Time, useNow } from "../../ui/time.tsx";
import { DAY_MS } from "./data.ts";

/** Days before the end of a token from which the pages mark it. */
export const SOON_DAYS = 30;
const TICK_MS = 60_000;

/** Shows when a token expires, with a mark if it has to be replaced soon. */
export function Expiry({ at }: { readonly at: string }) {
  const leftMs = Date.parse(at) - useNow(TICK_MS);
  if (leftMs > SOON_DAYS * DAY_MS) return <Time at={at} mayBeAhead />;
  const isOver = leftMs < 0;
  return (
    <Tag color={isOver ? "red" : "yellow"}>
      {isOver ? "Expired " : "Expires "}
      <Time at={at} mayBeAhead />
    </Tag>
  );
}
