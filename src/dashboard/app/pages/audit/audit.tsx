import { Button, CloseButton, Select, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { useApi, useSession } from "../../session/session.tsx";
import { explain } from "../../ui/explain.ts";
import { ChoiceFilter, FilterBar, TimeField, useFilters } from "../../ui/filters.tsx";
import { idOf, sentence } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { PageHeader } from "../../ui/layout.tsx";
import { List } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { EmptyState } from "../../ui/states.tsx";
import { VirtualRows } from "../../ui/virtual-rows.tsx";
import { allAccountsOptions } from "../partner/accounts-data.ts";
import { CompanySelect } from "../companies/company-select.tsx";
import { findByEmail, userOptions } from "../users/data.ts";
import { ACTION_WORDS, auditQuery, FILTERS } from "./audit-words.ts";
import { AuditLine } from "./audit-line.tsx";
import "./audit.css";
import { auditLogOptions, useIsOperator } from "./data.ts";

type Filters = ReturnType<typeof useFilters<(typeof FILTERS)[number]>>;

export function Page() {
  const filters = useFilters(FILTERS);
  const entries = useList(auditLogOptions(useApi(), useIsOperator(), auditQuery(filters.get)));
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
            {(one, rowProps) => (
              <AuditLine
                key={one.id}
                entry={one}
                rowProps={rowProps}
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

/** Filters a partner's audit log by company: the partner itself or one of its accounts. */
function OwnCompanyFilter(props: OwnCompanyProps) {
  const { company } = useSession();
  const accounts = useQuery(allAccountsOptions(useApi())).data ?? [];
  const all = [company, ...accounts].map(({ id, name }) => [String(id), name] as const);
  return <ChoiceFilter label="Their company" any="Every company" choices={all} {...props} />;
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
        <OwnCompanyFilter {...field("company")} />
      )}
      <TimeField label="From" {...field("since")} />
      <TimeField label="Before" {...field("until")} />
    </FilterBar>
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
      label="Who"
      placeholder="Email or number"
      value={typed ?? shown}
      error={error}
      onChange={(event) => setTyped(event.currentTarget.value)}
      onKeyDown={(event) => event.key === "Enter" && void apply()}
      onBlur={() => void apply()}
      rightSection={
        value !== undefined && (
          <CloseButton
            size="sm"
            aria-label="Clear who"
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
      if (user === undefined) return setError("Nobody has this email.");
      onFound(String(user.id));
    } catch (caught) {
      setError(explain(caught).title);
    }
  };
  return { error, find };
}
