import { useQuery } from "@tanstack/react-query";

import { useApi } from "../../session/session.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Dimmed, PageLink, Section } from "../../ui/layout.tsx";
import { Loaded } from "../../ui/states.tsx";
import { auditColumns } from "./audit-line.tsx";
import { auditQuery } from "./audit-words.ts";
import css from "./audit.module.css";
import { recentOptions, useIsOperator } from "./data.ts";

interface RecentActivityProps {
  readonly about: "company" | "user";
  /** Id of the company or user. */
  readonly id: number;
}

/** Name of the filter of the audit log by a company or a user. */
const FILTER_OF = { company: "company", user: "actor" } as const;

/**
 * Section with the newest audit log entries by and about a company or user, without reads, and a link to all of them.
 */
export function RecentActivity({ about, id }: RecentActivityProps) {
  const filter = FILTER_OF[about];
  const query = auditQuery((name) => (name === filter ? String(id) : undefined));
  const entries = useQuery(recentOptions(useApi(), useIsOperator(), query));
  return (
    <Section
      title="Recent activity"
      description={
        about === "company"
          ? "What people of this company did, and what was done to it."
          : "What this person did, and what was done to their account."
      }
      actions={<PageLink href={`/audit?${filter}=${id}`}>Audit log</PageLink>}
    >
      <Loaded query={entries}>
        {(rows) =>
          rows.length === 0 ? (
            <Dimmed size="sm">Nothing recorded lately.</Dimmed>
          ) : (
            <DataTable
              caption="Newest entries of the audit log"
              lines={css.lines}
              rows={rows}
              rowKey={({ id: entryId }) => entryId}
              columns={auditColumns}
            />
          )
        }
      </Loaded>
    </Section>
  );
}
