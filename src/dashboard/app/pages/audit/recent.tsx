import { useQuery } from "@tanstack/react-query";

import { useApi } from "../../session/session.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Dimmed, PageLink, Section } from "../../ui/layout.tsx";
import { Loaded } from "../../ui/states.tsx";
import { auditColumns } from "./audit-line.tsx";
import type { AuditQuery } from "./audit-words.ts";
import css from "./audit.module.css";
import { recentOptions, useIsOperator } from "./data.ts";

interface RecentActivityProps {
  /** Filter by actor, or by the company of the actors. */
  readonly query: AuditQuery;
  /** Address of the audit log with the same filter. */
  readonly href: string;
}

/** Section with the newest audit log entries that match a filter, and a link to all of them. */
export function RecentActivity({ query, href }: RecentActivityProps) {
  const entries = useQuery(recentOptions(useApi(), useIsOperator(), query));
  return (
    <Section
      title="Recent activity"
      description={
        query.company_id === undefined ? undefined : "What people of this company did last."
      }
      actions={<PageLink href={href}>Audit log</PageLink>}
    >
      <Loaded query={entries}>
        {(rows) =>
          rows.length === 0 ? (
            <Dimmed size="sm">Nothing recorded yet.</Dimmed>
          ) : (
            <DataTable
              caption="Newest entries of the audit log"
              lines={css.lines}
              rows={rows}
              rowKey={({ id }) => id}
              columns={auditColumns}
            />
          )
        }
      </Loaded>
    </Section>
  );
}
