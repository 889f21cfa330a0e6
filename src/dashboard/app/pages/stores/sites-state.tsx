import { Group, Stack } from "@mantine/core";

import { StateBadge } from "../../ui/badges.tsx";
import { Dimmed } from "../../ui/layout.tsx";
import { isBroken } from "../reviews/site-words.ts";
import { type StoreSite, useSiteName } from "./data.ts";

/** Shows which connections of a store to review sites work, after those that do not. */
export function SitesState({ sites }: { readonly sites: readonly StoreSite[] }) {
  const nameOf = useSiteName();
  if (sites.length === 0) return <Dimmed size="sm">None</Dimmed>;
  const states = Map.groupBy(sites, (one) => (isBroken(one) ? "disconnected" : "connected"));
  return (
    <Stack gap={4}>
      {(["disconnected", "connected"] as const).map((state) => {
        const names = states.get(state)?.map(({ provider }) => nameOf(provider));
        return (
          names && (
            <Group key={state} gap={6}>
              <StateBadge state={state} />
              <Dimmed span>{names.join(", ")}</Dimmed>
            </Group>
          )
        );
      })}
    </Stack>
  );
}
