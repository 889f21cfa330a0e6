import { Button, Select } from "@mantine/core";

import { useSession } from "../../session/session.tsx";
import { ChoiceFilter, FilterBar, useFilters } from "../../ui/filters.tsx";
import { sentence } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { idOf } from "../../ui/ids.ts";
import { List } from "../../ui/list.tsx";
import { PageHeader } from "../../ui/page-header.tsx";
import { EmptyState } from "../../ui/states.tsx";
import { TimeField } from "../../ui/time-field.tsx";
import { VirtualRows } from "../../ui/virtual-rows.tsx";
import { useAllAccounts } from "../accounts/data.ts";
import { CompanySelect } from "../companies/company-select.tsx";
import { ActorFilter } from "./actor-filter.tsx";
import { AuditLine } from "./audit-line.tsx";
import { auditQuery, FILTERS } from "./audit-filters.ts";
import { ACTION_WORDS } from "./audit-words.ts";
import { useAuditLog, useIsOperator } from "./data.ts";

import "./audit.css";

type Filters = ReturnType<typeof useFilters<(typeof FILTERS)[number]>>;

export function Page() {
  const filters = useFilters(FILTERS);
  const entries = useAuditLog(auditQuery(filters.get));
  return (
    <>
      <PageHeader
        title="Audit log"
        description="Who did what, newest first: sign-ins, refusals, tokens, secrets, and every change to people and companies."
        actions={
          <Button
            variant="default"
            leftSection={<Icon name="refresh" size={16} />}
            loading={entries.pages.isRefetching && !entries.pages.isFetchingNextPage}
            onClick={() => void entries.pages.refetch()}
          >
            Refresh
          </Button>
        }
      />
      <AuditFilters filters={filters} />
      <List
        list={entries}
        noun={["entry", "entries"]}
        empty={
          <EmptyState icon="search" title="Nothing was recorded that fits">
            Widen the time, or clear the filters.
          </EmptyState>
        }
      >
        {() => (
          <VirtualRows
            label="Entries, newest first"
            className="plain-list framed"
            list={entries}
            height={LINE_PX}
          >
            {(one, place) => (
              <AuditLine
                key={one.id}
                entry={one}
                place={place}
                onActor={(actor) => filters.set({ actor: String(actor) })}
              />
            )}
          </VirtualRows>
        )}
      </List>
    </>
  );
}

const LINE_PX = 45;
const ACTIONS = Object.entries(ACTION_WORDS).map(([value, words]) => ({
  value,
  label: sentence(words),
}));

interface OwnCompanyProps {
  readonly value: string | undefined;
  readonly onChange: (company: string | undefined) => void;
}

/** Of a partner: the partner itself, or one of its accounts. */
function OwnCompanyFilter(props: OwnCompanyProps) {
  const { company } = useSession();
  const accounts = useAllAccounts().data ?? [];
  const all = [company, ...accounts].map(({ id, name }) => [String(id), name] as const);
  return <ChoiceFilter label="Their company" any="Every company" choices={all} {...props} />;
}

function AuditFilters({ filters: { get, set, count, clear } }: { readonly filters: Filters }) {
  const isOperator = useIsOperator();
  const action = get("action");
  const isKnown = action === undefined || action in ACTION_WORDS;
  return (
    <FilterBar count={count} onClear={clear}>
      <Select
        label="Action"
        placeholder="Every action"
        searchable
        selectFirstOptionOnChange
        clearable
        nothingFoundMessage="No such action"
        data={isKnown ? ACTIONS : [{ value: action, label: action }, ...ACTIONS]}
        value={action ?? null}
        onChange={(next) => set({ action: next ?? undefined })}
      />
      {isOperator ? (
        <>
          <ActorFilter value={idOf(get("actor"))} onChange={(actor) => set({ actor })} />
          <CompanySelect
            label="Their company"
            types={["platform", "partner", "account"]}
            placeholder="Every company"
            value={idOf(get("company"))}
            onChange={(company) => set({ company: company && String(company.id) })}
          />
        </>
      ) : (
        <OwnCompanyFilter value={get("company")} onChange={(company) => set({ company })} />
      )}
      <TimeField label="From" value={get("since")} onChange={(since) => set({ since })} />
      <TimeField label="Before" value={get("until")} onChange={(until) => set({ until })} />
    </FilterBar>
  );
}
