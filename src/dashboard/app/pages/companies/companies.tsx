import { Group } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import { useApi } from "../../session/session.tsx";
import { BreakableText } from "../../ui/badges.tsx";
import { DialogButton, type OpenedByLink } from "../../ui/dialog.tsx";
import {
  ChoiceFilter,
  FilterBar,
  TextFilter,
  useFilters,
  useOpenedByLink,
} from "../../ui/filters.tsx";
import { idOf, number } from "../../ui/format.ts";
import { CellText, PageHeader, PageLink, PageTabs, RowLink } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { EmptyState } from "../../ui/states.tsx";
import { Time } from "../../ui/time.tsx";
import { NewAccount, NewPartner } from "./company-forms.tsx";
import { ActiveFilter, activeQuery, CompanySelect } from "./company-select.tsx";
import { CompanyState } from "./company-switches.tsx";
import {
  accountsOptions,
  type CompanyFilter,
  type CompanyType,
  partnersOptions,
  plansOptions,
} from "./data.ts";

export function Page() {
  const { get, set } = useFilters(["tab", "name", "active", "partner", "plan"]);
  const tab = get("tab") === "accounts" ? "accounts" : "partners";
  return (
    <>
      <PageHeader
        title="Companies"
        description="Partners resell the platform under their own brand. Their accounts are the businesses whose stores are reviewed."
        actions={
          <NewCompanyButton
            type={tab === "accounts" ? "account" : "partner"}
            {...useOpenedByLink()}
          />
        }
      />
      <PageTabs
        value={tab}
        onChange={(next) =>
          set({
            tab: next === "accounts" ? next : undefined,
            name: undefined,
            active: undefined,
            partner: undefined,
            plan: undefined,
          })
        }
        tabs={{
          partners: { title: "Partners", content: <PartnerList /> },
          accounts: { title: "Accounts", content: <AccountList /> },
        }}
      />
    </>
  );
}

/** Button that opens the form of a new company. */
function NewCompanyButton({ type, ...opened }: OpenedByLink & { readonly type: CompanyType }) {
  return (
    <DialogButton key={type} label={`New ${type}`} {...opened}>
      {(close) =>
        type === "partner" ? <NewPartner onClose={close} /> : <NewAccount onClose={close} />
      }
    </DialogButton>
  );
}

function PartnerList() {
  const { get, field, count, clear } = useFilters(["name", "active"]);
  return (
    <>
      <FilterBar count={count} onClear={clear}>
        <TextFilter label="Name" {...field("name")} />
        <ActiveFilter {...field("active")} />
      </FilterBar>
      <TableList
        list={useList(partnersOptions(useApi(), filterOf(get)))}
        noun={["partner", "partners"]}
        empty={<NoCompany isFiltered={count > 0} type="partner" />}
        table={{
          caption: "Partners, newest first",
          end: "Open",
          columns: (one) => ({
            Name: <CompanyName {...one} />,
            "White label": one.white_label.enabled ? (
              <BreakableText text={`${one.white_label.brand_name} at ${one.white_label.domain}`} />
            ) : (
              "None"
            ),
            State: <CompanyState company={one} />,
            Created: <Time at={one.created_at} />,
            Open: <PartnerLinks {...one} />,
          }),
        }}
      />
    </>
  );
}

function AccountList() {
  const { get, set, field, count, clear } = useFilters(["name", "active", "partner", "plan"]);
  const plans = useQuery(plansOptions(useApi())).data ?? [];
  const partnerId = idOf(get("partner"));
  const planId = idOf(get("plan"));
  const filter = {
    ...filterOf(get),
    ...(partnerId !== undefined && { partner_id: partnerId }),
    ...(planId !== undefined && { plan_id: planId }),
  };
  return (
    <>
      <FilterBar count={count} onClear={clear}>
        <TextFilter label="Name" {...field("name")} />
        <CompanySelect
          label="Partner"
          types={["partner"]}
          placeholder="Every partner"
          value={partnerId}
          onChange={(partner) => set({ partner: partner && String(partner.id) })}
        />
        <ChoiceFilter
          label="Plan"
          any="Every plan"
          choices={plans.map(({ id, name }) => [String(id), name] as const)}
          {...field("plan")}
        />
        <ActiveFilter {...field("active")} />
      </FilterBar>
      <TableList
        list={useList(accountsOptions(useApi(), filter))}
        noun={["account", "accounts"]}
        empty={<NoCompany isFiltered={count > 0} type="account" />}
        table={{
          caption: "Accounts, newest first",
          columns: (one) => ({
            Name: <CompanyName {...one} />,
            Partner: one.partner_name ?? "None",
            Plan: one.plan.name,
            Stores: number(one.stores.length),
            State: <CompanyState company={one} />,
            Created: <Time at={one.created_at} />,
          }),
        }}
      />
    </>
  );
}

/** Converts the filters that the partner list and the account list share to query parameters of the API. */
function filterOf(get: (name: "name" | "active") => string | undefined): CompanyFilter {
  const name = get("name");
  return { ...(name && { name }), ...activeQuery(get("active")) };
}

interface CompanyProps {
  readonly id: number;
  readonly name: string;
}

function CompanyName({ id, name }: CompanyProps) {
  return <CellText title={<RowLink href={`/companies/${id}`}>{name}</RowLink>}>ID {id}</CellText>;
}

function PartnerLinks({ id, name }: CompanyProps) {
  return (
    <Group gap="md" justify="flex-end" wrap="nowrap" className="on-top">
      <PageLink href={`/companies/${id}/webhooks`} aria-label={`Webhooks of ${name}`}>
        Webhooks
      </PageLink>
      <PageLink href={`/companies/${id}?tab=accounts`} aria-label={`Accounts of ${name}`}>
        Accounts
      </PageLink>
    </Group>
  );
}

interface NoCompanyProps {
  readonly isFiltered: boolean;
  readonly type: CompanyType;
}

function NoCompany({ isFiltered, type }: NoCompanyProps) {
  if (isFiltered)
    return (
      <EmptyState icon="search" title={`No ${type} matches`}>
        Search matches any part of a name. Clear the filters to see all.
      </EmptyState>
    );
  return (
    <EmptyState
      icon="building"
      title={`There is no ${type} yet`}
      action={<NewCompanyButton type={type} />}
    >
      {type === "partner"
        ? "Create a partner first. Accounts and webhooks belong to a partner."
        : "An account belongs to a partner, and has a plan and stores."}
    </EmptyState>
  );
}
