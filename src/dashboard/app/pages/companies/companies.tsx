import { PageTabs } from "../../ui/layout.tsx";
import { Group } from "@mantine/core";

import { useApi } from "../../session/session.tsx";
import { StateBadge } from "../../ui/badges.tsx";
import { ActiveSwitch, ConfirmedAction, DialogButton } from "../../ui/dialog.tsx";
import { FilterBar, TextFilter, useFilters } from "../../ui/filters.tsx";
import { idOf } from "../../ui/format.ts";
import { CellText, Dimmed, PageHeader, PageLink } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { EmptyState } from "../../ui/states.tsx";
import { Time } from "../../ui/time.tsx";
import { NewAccount, NewPartner } from "./company-forms.tsx";
import { ActiveFilter, activeQuery, CompanySelect, Stores } from "./company-select.tsx";
import {
  accountsOptions,
  type CompanyFilter,
  type CompanyType,
  partnersOptions,
  useCompanyActions,
} from "./data.ts";

export function Page() {
  const { get, set } = useFilters(["tab", "name", "active", "partner"]);
  const tab = get("tab") === "accounts" ? "accounts" : "partners";
  return (
    <>
      <PageHeader
        title="Companies"
        description="Partners resell the platform under their own brand. Their accounts are the businesses whose stores are reviewed."
        actions={<NewCompanyButton type={tab === "accounts" ? "account" : "partner"} />}
      />
      <PageTabs
        value={tab}
        onChange={(next) =>
          set({
            tab: next === "accounts" ? next : undefined,
            name: undefined,
            active: undefined,
            partner: undefined,
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
function NewCompanyButton({ type }: { readonly type: CompanyType }) {
  return (
    <DialogButton key={type} label={`New ${type}`}>
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
          end: "Change",
          columns: (one) => ({
            Name: <NameAndNumber {...one} href={`/companies/${one.id}`} />,
            "White label": one.white_label.enabled
              ? `${one.white_label.brand_name} at ${one.white_label.domain}`
              : "None",
            State: <CompanyState company={one} />,
            Created: <Time at={one.created_at} />,
            Accounts: <AccountsLink partnerId={one.id} />,
            Change: <CompanyActions type="partner" company={one} />,
          }),
        }}
      />
    </>
  );
}

function AccountList() {
  const { get, set, field, count, clear } = useFilters(["name", "active", "partner"]);
  const partnerId = idOf(get("partner"));
  const filter = { ...filterOf(get), ...(partnerId !== undefined && { partner_id: partnerId }) };
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
        <ActiveFilter {...field("active")} />
      </FilterBar>
      <TableList
        list={useList(accountsOptions(useApi(), filter))}
        noun={["account", "accounts"]}
        empty={<NoCompany isFiltered={count > 0} type="account" />}
        table={{
          caption: "Accounts, newest first",
          end: "Change",
          columns: (one) => ({
            Name: <NameAndNumber {...one} />,
            Partner: one.partner_name ?? "None",
            Plan: one.plan.name,
            Stores: <Stores stores={one.stores} />,
            State: <CompanyState company={one} />,
            Created: <Time at={one.created_at} />,
            Change: <CompanyActions type="account" company={one} />,
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

interface NameProps {
  readonly id: number;
  readonly name: string;
  /** Path of the company's page; absent for companies without a page. */
  readonly href?: string;
}

function NameAndNumber({ id, name, href }: NameProps) {
  return (
    <CellText
      title={
        href === undefined ? (
          name
        ) : (
          <PageLink href={href} inherit>
            {name}
          </PageLink>
        )
      }
    >
      Number {id}
    </CellText>
  );
}

function AccountsLink({ partnerId }: { readonly partnerId: number }) {
  return (
    <PageLink href={`/companies?tab=accounts&partner=${partnerId}`} className="one-line">
      Show accounts
    </PageLink>
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

interface Company {
  readonly id: number;
  readonly name: string;
  readonly is_active: boolean;
  readonly require_second_factor: boolean;
}

function CompanyState({ company }: { readonly company: Company }) {
  return (
    <>
      <StateBadge state={company.is_active ? "active" : "inactive"} />
      {company.require_second_factor && <Dimmed>Two-step required</Dimmed>}
    </>
  );
}

interface CompanyActionsProps {
  readonly type: CompanyType;
  readonly company: Company;
}

function CompanyActions(props: CompanyActionsProps) {
  return (
    <Group gap="xs" justify="flex-end" wrap="nowrap" className="row-actions">
      <RequirementSwitch {...props} />
      <CompanySwitch {...props} />
    </Group>
  );
}

/** Button that requires a second factor of the company's users, or ends this requirement. */
function RequirementSwitch({ type, company }: CompanyActionsProps) {
  const { setFactorRequired } = useCompanyActions();
  const { id, name, require_second_factor: isRequired } = company;
  const label = isRequired ? "Stop requiring two-step" : "Require two-step";
  return (
    <ConfirmedAction
      label={label}
      button={{ size: "xs", variant: "subtle", color: "gray", "aria-label": `${label}: ${name}` }}
      title={
        isRequired
          ? `Stop requiring two-step verification at ${name}?`
          : `Require two-step verification at ${name}?`
      }
      action={label}
      onConfirm={() => setFactorRequired(type, id, !isRequired)}
      done={`Two-step verification is ${isRequired ? "no longer required" : "required"} at ${name}.`}
    >
      {isRequired
        ? "Users without a second factor sign in with their password only. Existing factors stay."
        : "Users without a second factor set one up at their next sign-in. Current sessions stay active."}
      {type === "partner" && " This does not apply to the users of its accounts."}
    </ConfirmedAction>
  );
}

function CompanySwitch({ type, company }: CompanyActionsProps) {
  const { setActive } = useCompanyActions();
  const { id, name, is_active: isActive } = company;
  return (
    <ActiveSwitch
      isActive={isActive}
      name={name}
      onSwitch={(next) => setActive(type, id, next)}
      done={`${name} is ${isActive ? "inactive: nobody there is signed in" : "active"}.`}
    >
      {isActive ? DEACTIVATION_WORDS[type] : ACTIVATION_WORDS[type]}
    </ActiveSwitch>
  );
}

const DEACTIVATION_WORDS = {
  partner:
    "All users of the partner and of its accounts are signed out immediately and cannot sign in. Their tokens and API keys are revoked permanently, including those of clients that act for them. Reviews still arrive.",
  account:
    "All users of the account are signed out immediately and cannot sign in. Their tokens and API keys are revoked permanently. Reviews still arrive.",
} as const;

const ACTIVATION_WORDS = {
  partner:
    "Its users and those of its active accounts can sign in again. Previous tokens and API keys stay revoked.",
  account: "Its users can sign in again. Previous tokens and API keys stay revoked.",
} as const;
