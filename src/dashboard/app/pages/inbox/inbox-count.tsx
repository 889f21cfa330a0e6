import { useQuery } from "@tanstack/react-query";

import { useApi } from "../../session/session.tsx";
import { Tag } from "../../ui/badges.tsx";
import { number } from "../../ui/format.ts";
import { inboxStatusOptions } from "./data.ts";

const READ_AGAIN_MS = 60_000;

/** Number of rejected actions, beside the entry of the inbox in the navigation menu. */
export function InboxCount() {
  const status = useQuery({ ...inboxStatusOptions(useApi()), refetchInterval: READ_AGAIN_MS });
  const rejected = status.data?.rejected ?? 0;
  return rejected > 0 && <Tag color="red">{number(rejected)}</Tag>;
}
