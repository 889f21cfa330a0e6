import { Button, Select, TextInput } from "@mantine/core";

import { useApi } from "../../session.tsx";
import { CursorPages, useCursorPages } from "../../ui/cursor-pages.tsx";
import { FilterBar, useFilters } from "../../ui/filters.tsx";
import { Icon } from "../../ui/icon.tsx";
import { PageHeader } from "../../ui/page-header.tsx";
import { EmptyState } from "../../ui/states.tsx";
import { sentence } from "../../ui/words.ts";
import { ActorFilter } from "./actor-filter.tsx";
import { AuditEntry } from "./audit-entry.tsx";
import { auditQuery, FILTERS, instantOf, localOf } from "./audit-filters.ts";
import { ACTION_WORDS } from "./audit-words.ts";
import { CompanySelect } from "./company-select.tsx";
import { idOf } from "../../ui/ids.ts";

type Filters = ReturnType<typeof useFilters<(typeof FILTERS)[number]>>;

export function Page() {
  const api = useApi();
  const filters = useFilters(FILTERS);
  const query = auditQuery(filters.get);
  const entries = useCursorPages(["audit-log", query], (cursor) =>
    api.call("GET", "/admin/audit-log", { query: { ...query, ...(cursor && { cursor }) } }),
  );
  return (
    <>
      <PageHeader
        title="Audit log"
        description="Who did what, newest first: sign-ins, refusals, tokens, secrets, and every change to people and companies."
        actions={
          <Button
            variant="default"
            leftSection={<Icon name="refresh" size={16} />}
            loading={entries.isRefetching && !entries.isFetchingNextPage}
            onClick={() => void entries.refetch()}
          >
            Refresh
          </Button>
        }
      />
      <AuditFilters filters={filters} />
      <CursorPages
        query={entries}
        noun={["entry", "entries"]}
        empty={
          <EmptyState icon="search" title="Nothing was recorded that fits">
            Widen the time, or clear the filters.
          </EmptyState>
        }
      >
        {(rows) => (
          <ul className="plain-list framed" aria-label="Entries, newest first">
            {rows.map((one) => (
              <AuditEntry
                key={one.id}
                entry={one}
                onActor={(actor) => filters.set({ actor: String(actor) })}
              />
            ))}
          </ul>
        )}
      </CursorPages>
    </>
  );
}

const ACTIONS = Object.entries(ACTION_WORDS).map(([value, words]) => ({
  value,
  label: sentence(words),
}));

function AuditFilters({ filters: { get, set, count, clear } }: { readonly filters: Filters }) {
  const action = get("action");
  const isKnown = action === undefined || action in ACTION_WORDS;
  return (
    <FilterBar count={count} onClear={clear}>
      <Select
        label="Action"
        placeholder="Every action"
        searchable
        clearable
        nothingFoundMessage="No such action"
        data={isKnown ? ACTIONS : [{ value: action, label: action }, ...ACTIONS]}
        value={action ?? null}
        onChange={(next) => set({ action: next ?? undefined })}
      />
      <ActorFilter value={idOf(get("actor"))} onChange={(actor) => set({ actor })} />
      <CompanySelect
        label="Their company"
        types={["platform", "partner", "account"]}
        placeholder="Every company"
        value={idOf(get("company"))}
        onChange={(company) => set({ company: company && String(company.id) })}
      />
      <TextInput
        type="datetime-local"
        label="From"
        value={localOf(get("since"))}
        onChange={(event) => set({ since: instantOf(event.currentTarget.value) })}
      />
      <TextInput
        type="datetime-local"
        label="Before"
        value={localOf(get("until"))}
        onChange={(event) => set({ until: instantOf(event.currentTarget.value) })}
      />
    </FilterBar>
  );
}
