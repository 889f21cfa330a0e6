import { Panel } from "../../ui/layout.tsx";

import { useQuery } from "@tanstack/react-query";

import { DataTable } from "../../ui/data-table.tsx";
import { duration, number } from "../../ui/format.ts";
import { ExactTime } from "../../ui/time.tsx";
import { useReader } from "./data/data.ts";
import { type PastIncident, pastIncidentsOptions } from "./data/reads.ts";
import { diagnosisOf } from "./deliveries/attempt-words.ts";

/** Lists the past incidents of a subscription. Renders nothing while there are none. */
export function PastIncidents({ id }: { readonly id: string }) {
  const { incidents = [] } = useQuery(pastIncidentsOptions(useReader(), id)).data ?? {};
  if (incidents.length === 0) return null;
  return (
    <Panel title="Past incidents">
      <DataTable
        caption="Past incidents, newest first"
        rows={incidents}
        rowKey={(one) => one.id}
        columns={(one) => ({
          Began: <ExactTime at={one.began_at} />,
          Duration: duration((Date.parse(one.ended_at) - Date.parse(one.began_at)) / 1_000),
          Cause: causeOf(one),
          "Failed attempts": number(one.failed_attempts),
          Outcome: outcomeOf(one),
        })}
      />
    </Panel>
  );
}

function causeOf({ failed_attempts: failed, ...cause }: PastIncident): string {
  return failed === 0 ? "Backlog" : diagnosisOf({ outcome: "failed", ...cause }).title;
}

function outcomeOf({ disabled_at: disabledAt, ended_by: endedBy }: PastIncident): string {
  const end = endedBy === "recovered" ? "recovered" : "enabled";
  return disabledAt === null ? `Not disabled, ${end}` : `Disabled, then ${end}`;
}
