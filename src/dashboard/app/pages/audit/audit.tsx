import { Button, CloseButton, Select, Switch, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { ACTION_WORDS, entryWords, phraseOf } from "../../api/audit-words.ts";
import { useApi, useSession } from "../../session/session.tsx";
import { errorMessageOf } from "../../ui/error-message.ts";
import { ExportMenu } from "../../ui/export-menu.tsx";
import {
  ChoiceFilter,
  FilterBar,
  type FilterField,
  TextFilter,
  TimeField,
  useFilters,
} from "../../ui/filters.tsx";
import { idOf, sentence } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { PageHeader } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { EmptyState } from "../../ui/states.tsx";
import { allAccountsOptions } from "../partner/data.ts";
import { CompanySelect } from "../companies/company-select.tsx";
import { findByEmail, userOptions } from "../users/data.ts";
import {
  AUDIT_CATEGORIES,
  type AuditQuery,
  auditQuery,
  FILTERS,
  PERIODS,
  WITH_READS,
} from "./audit-words.ts";
import { auditColumns, AuditDetails } from "./audit-line.tsx";
import css from "./audit.module.css";
import { type AuditEntry, auditLogOptions, useIsOperator } from "./data.ts";

type Filters = ReturnType<typeof useFilters<(typeof FILTERS)[number]>>;

export function Page() {
  const filters = useFilters(FILTERS);
  const query = auditQuery(filters.get);
  const entries = useList(auditLogOptions(useApi(), useIsOperator(), query));
  return (
    <>
      <PageHeader
        title="Audit log"
        description="Sign-ins, denied requests, tokens, secrets, and every change to users and companies."
        actions={
          <>
            <ExportButton query={query} />
            <Button
              variant="default"
              leftSection={<Icon name="refresh" size={16} />}
              loading={entries.pages.isRefetching && !entries.pages.isFetchingNextPage}
              onClick={() => void entries.pages.refetch()}
            >
              Refresh
            </Button>
          </>
        }
      />
      <AuditFilters filters={filters} />
      <TableList
        list={entries}
        noun={["entry", "entries"]}
        empty={
          <EmptyState icon="search" title="No matching entries">
            Extend the time range or clear the filters.
          </EmptyState>
        }
        table={{
          caption: "Entries, newest first",
          lines: css.lines,
          heights: [41, 70],
          columns: auditColumns,
          details: {
            label: (entry) => `Details: ${entryWords(entry)}`,
            render: (entry) => (
              <AuditDetails
                entry={entry}
                onActor={(actor) => filters.set({ actor: String(actor) })}
              />
            ),
          },
        }}
      />
    </>
  );
}

const ACTIONS = AUDIT_CATEGORIES.map(({ group, actions }) => ({
  group,
  items: actions.map((value) => ({ value, label: sentence(phraseOf(value)) })),
}));

/** Menu that saves the audit log entries that match the filters as a file. */
function ExportButton({ query }: { readonly query: AuditQuery }) {
  const { load } = auditLogOptions(useApi(), useIsOperator(), query);
  return (
    <ExportMenu<AuditEntry>
      name="audit-log"
      noun={["entry", "entries"]}
      start={() => async (cursor) => {
        const { rows, next } = await load(cursor);
        return { data: [...rows], next_cursor: next };
      }}
      lineOf={({ details, ...entry }) => ({ ...entry, details: JSON.stringify(details) })}
    />
  );
}

/** Filters a partner's audit log by company: the partner itself or one of its accounts. */
function OwnCompanyFilter(props: FilterField) {
  const { company } = useSession();
  const accounts = useQuery(allAccountsOptions(useApi())).data ?? [];
  const all = [company, ...accounts].map(({ id, name }) => [String(id), name] as const);
  return <ChoiceFilter label="Company" any="All" choices={all} {...props} />;
}

function AuditFilters({
  filters: { get, set, field, count, clear },
}: {
  readonly filters: Filters;
}) {
  const isOperator = useIsOperator();
  const action = get("action");
  const isKnown = action === undefined || action in ACTION_WORDS;
  return (
    <FilterBar
      count={count}
      inView={get("q") === undefined ? 0 : 1}
      onClear={clear}
      search={<TextFilter label="Search" placeholder="Name, IP, ID" {...field("q")} />}
    >
      <ChoiceFilter
        label="Category"
        any="All"
        choices={AUDIT_CATEGORIES.map((one) => [one.category, one.group] as const)}
        {...field("category")}
      />
      <Select
        label="Action"
        placeholder="All"
        searchable
        selectFirstOptionOnChange
        selectFirstOptionOnDropdownOpen
        clearable
        nothingFoundMessage="No matching action"
        data={isKnown ? ACTIONS : [{ group: "Other", items: [action] }, ...ACTIONS]}
        value={action ?? null}
        onChange={(next) => set({ action: next ?? undefined })}
      />
      {isOperator ? (
        <>
          <ActorFilter value={idOf(get("actor"))} onChange={(actor) => set({ actor })} />
          <CompanySelect
            label="Company"
            types={["platform", "partner", "account"]}
            placeholder="All"
            value={idOf(get("company"))}
            onChange={(company) => set({ company: company && String(company.id) })}
          />
        </>
      ) : (
        <OwnCompanyFilter {...field("company")} />
      )}
      <PeriodFilter get={get} set={set} />
      {isOperator && (
        <Switch
          className={css.switch}
          label="Show reads"
          checked={get("reads") === WITH_READS}
          onChange={(event) => set({ reads: event.currentTarget.checked ? WITH_READS : undefined })}
        />
      )}
    </FilterBar>
  );
}

const CUSTOM = "custom";

/** Filters by a preset period, or by two times. */
function PeriodFilter({ get, set }: Pick<Filters, "get" | "set">) {
  const [since, until] = [get("since"), get("until")];
  const hasTimes = since !== undefined || until !== undefined;
  const [isChosen, setChosen] = useState(false);
  const isCustom = hasTimes || isChosen;
  return (
    <>
      <ChoiceFilter
        label="Time"
        any="Any time"
        choices={[
          ...Object.entries(PERIODS).map(([name, [title]]) => [name, title] as const),
          [CUSTOM, "From … to …"],
        ]}
        value={isCustom ? CUSTOM : get("within")}
        onChange={(value) => {
          setChosen(value === CUSTOM);
          if (value === CUSTOM) set({ within: undefined });
          else set({ within: value, since: undefined, until: undefined });
        }}
      />
      {isCustom && (
        <>
          <TimeField label="From" value={since} onChange={(at) => set({ since: at })} />
          <TimeField label="Before" value={until} onChange={(at) => set({ until: at })} />
        </>
      )}
    </>
  );
}

interface ActorFilterProps {
  readonly value: number | undefined;
  readonly onChange: (id: string | undefined) => void;
}

/**
 * Filters the audit log by actor. The field accepts the id of a user, or an email that is looked up when the
 * user presses Enter.
 */
function ActorFilter({ value, onChange }: ActorFilterProps) {
  const { data: chosen } = useQuery(userOptions(useApi(), value));
  const [typed, setTyped] = useState<string>();
  const { error, find } = useActorSearch(onChange);
  const apply = async () => {
    if (typed === undefined) return;
    await find(typed.trim());
    setTyped(undefined);
  };
  const shown = value === undefined ? "" : (chosen?.email ?? String(value));
  return (
    <TextInput
      label="User"
      placeholder="Email or ID"
      value={typed ?? shown}
      error={error}
      onChange={(event) => setTyped(event.currentTarget.value)}
      onKeyDown={(event) => event.key === "Enter" && void apply()}
      onBlur={() => void apply()}
      rightSection={
        value !== undefined && (
          <CloseButton
            size="sm"
            aria-label="Clear user"
            onClick={() => {
              setTyped(undefined);
              onChange(undefined);
            }}
          />
        )
      }
    />
  );
}

/** Resolves an email or a user id to a user id. If no user has the email, `error` says so. */
function useActorSearch(onFound: (id: string | undefined) => void) {
  const api = useApi();
  const [error, setError] = useState<string>();
  const find = async (text: string) => {
    setError(undefined);
    if (text === "") return onFound(undefined);
    const id = idOf(text);
    if (id !== undefined) return onFound(String(id));
    try {
      const user = await findByEmail(api, text);
      if (user === undefined) return setError("No user has this email.");
      onFound(String(user.id));
    } catch (caught) {
      setError(errorMessageOf(caught).title);
    }
  };
  return { error, find };
}
