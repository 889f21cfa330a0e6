import { useQuery } from "@tanstack/react-query";

import { useApi } from "../../session/session.tsx";
import { StateBadge } from "../../ui/badges.tsx";
import { Dimmed } from "../../ui/layout.tsx";
import { accountSitesOptions, useSiteName } from "./data.ts";

interface SitesStateProps {
  readonly accountId: number;
  readonly storeId: number;
}

/** Shows whether the connections of a store to review sites work, and the names of those that do not. */
export function SitesState({ accountId, storeId }: SitesStateProps) {
  const { data } = useQuery(accountSitesOptions(useApi(), accountId));
  const nameOf = useSiteName();
  if (data === undefined) return null;
  const sites = data.filter((one) => one.store_id === storeId);
  const broken = sites.filter(({ pull, post }) => !pull.connected || !post.connected);
  if (sites.length === 0) return "None";
  const names = (broken.length > 0 ? broken : sites).map(({ provider }) => nameOf(provider));
  return (
    <>
      <StateBadge state={broken.length > 0 ? "disconnected" : "connected"} />
      <Dimmed>{names.join(", ")}</Dimmed>
    </>
  );
}
