import { Button, ColorSwatch, Group, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link, useParams } from "wouter";

import "@mantine/core/styles/ColorSwatch.css";
import { roleName } from "../../session/roles.ts";
import { ActAsPartner } from "../companies/act-as-partner.tsx";
import { deletionOfOptions } from "../erasures/data.ts";
import { useApi } from "../../session/session.tsx";
import { CopyableId } from "../../ui/copy.tsx";
import { DialogButton } from "../../ui/dialog.tsx";
import { useFilters } from "../../ui/filters.tsx";
import { idOf } from "../../ui/format.ts";
import {
  CellText,
  Facts,
  PageHeader,
  PageTabs,
  RowLink,
  Section,
  TextLink,
} from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { EmptyState, Loaded, NotFound, UnreadRecord } from "../../ui/states.tsx";
import { ExactTime, Time } from "../../ui/time.tsx";
import { RecentActivity } from "../audit/recent.tsx";
import { usersOptions } from "../users/data.ts";
import { NewUser } from "../users/user-form.tsx";
import { UserState } from "../users/user-state.tsx";
import { EditAccount, EditPartner } from "../companies/company-forms.tsx";
import { Accounts, StoreList } from "./company-lists.tsx";
import {
  CompanyState,
  CompanySwitch,
  RequirementSwitch,
  useInactivePartner,
} from "../companies/company-switches.tsx";
import {
  type Account,
  accountOptions,
  companyOptions,
  type CompanyType,
  type Partner,
  partnerOptions,
} from "../companies/data.ts";

const BACK = { href: "/companies", title: "Companies" };

/** Page of one partner or account: its settings, its people, and a partner's accounts or an account's stores. */
export function Page() {
  const id = idOf(useParams()["id"]);
  const company = useQuery(companyOptions(useApi(), id));
  if (id === undefined || company.data?.type === "platform") return <NotFound back={BACK} />;
  if (company.data === undefined)
    return <UnreadRecord title="Company" back={BACK} query={company} />;
  // The key makes the page of another company a new page, whose heading takes the focus.
  const isPartner = company.data.type === "partner";
  return isPartner ? <PartnerPage key={id} id={id} /> : <AccountPage key={id} id={id} />;
}

interface IdProps {
  readonly id: number;
}

function PartnerPage({ id }: IdProps) {
  const partner = useQuery(partnerOptions(useApi(), id));
  return (
    <Loaded query={partner}>
      {(one) => (
        <CompanyPage
          type="partner"
          company={one}
          kind="Partner"
          renderForm={(close) => <EditPartner partner={one} onClose={close} />}
          link={
            <>
              {one.is_active && <ActAsPartner id={id} name={one.name} />}
              <Button component={Link} href={`/companies/${id}/webhooks`}>
                Webhooks
              </Button>
            </>
          }
          facts={[["White label", <WhiteLabel key="label" partner={one} />]]}
          part={{ name: "accounts", title: "Accounts", content: <Accounts partnerId={id} /> }}
        />
      )}
    </Loaded>
  );
}

function WhiteLabel({ partner: { white_label: label } }: { readonly partner: Partner }) {
  return label.enabled ? `${label.brand_name} at ${label.domain}` : "None";
}

function AccountPage({ id }: IdProps) {
  const account = useQuery(accountOptions(useApi(), id));
  return (
    <Loaded query={account}>
      {(one) => (
        <CompanyPage
          type="account"
          company={one}
          kind={
            <>
              Account of <PartnerLink account={one} />
            </>
          }
          renderForm={(close) => <EditAccount account={one} onClose={close} />}
          facts={[
            ["Partner", <PartnerLink key="partner" account={one} />],
            [
              "Plan",
              <TextLink key="plan" href="/plans">
                {one.plan.name}
              </TextLink>,
            ],
          ]}
          part={{ name: "stores", title: "Stores", content: <StoreList account={one} /> }}
        />
      )}
    </Loaded>
  );
}

function PartnerLink({ account }: { readonly account: Account }) {
  const { partner_id: id, partner_name: name } = account;
  return id === null ? "no partner" : <TextLink href={`/companies/${id}`}>{name}</TextLink>;
}

interface CompanyPageProps {
  readonly type: CompanyType;
  readonly company: Partner | Account;
  /** What the company is, below its name. */
  readonly kind: ReactNode;
  /** Returns the form that changes the company. */
  readonly renderForm: (close: () => void) => ReactNode;
  readonly link?: ReactNode;
  /** Settings that only companies of this type have. */
  readonly facts: readonly (readonly [name: string, value: ReactNode])[];
  /** Tab with what belongs to the company. */
  readonly part: { readonly name: string; readonly title: string; readonly content: ReactNode };
}

function CompanyPage({ type, company, kind, renderForm, link, facts, part }: CompanyPageProps) {
  const { get, set } = useFilters(["tab"]);
  const { name } = company;
  const tabs = {
    details: {
      title: "Details",
      content: <Details type={type} company={company} facts={facts} />,
    },
    [part.name]: part,
    users: { title: "Users", content: <Users type={type} company={company} /> },
  };
  const tab = get("tab") ?? "details";
  return (
    <>
      <PageHeader
        title={name}
        back={BACK}
        description={
          <Group gap="xs">
            <CompanyState company={company} />
            <span>{kind}</span>
          </Group>
        }
        actions={
          <>
            <DialogButton label="Edit" title={`Edit ${name}`} button={{ variant: "default" }}>
              {renderForm}
            </DialogButton>
            {link}
          </>
        }
      />
      <PageTabs
        value={tab in tabs ? tab : "details"}
        onChange={(next) => set({ tab: next === "details" ? undefined : next })}
        tabs={tabs}
      />
    </>
  );
}

type DetailsProps = Pick<CompanyPageProps, "type" | "company" | "facts">;

function Details({ type, company, facts }: DetailsProps) {
  const { id, is_active: isActive, require_second_factor: isRequired } = company;
  return (
    <Stack gap="lg">
      <Section title="Settings">
        <Facts
          facts={[
            ...facts,
            ["Color", <Colour key="colour" color={company.primary_color} />],
            ["Logo", company.logo_url ?? "None"],
            ["Created", <ExactTime key="created" at={company.created_at} />],
            ["External ID", company.external_id ?? "None"],
            ["ID", <CopyableId key="id" id={String(id)} label="Copy the company ID" />],
          ]}
        />
      </Section>
      <Section
        title="Two-step verification"
        description={
          isRequired
            ? `Required of all users of this company${type === "partner" ? ", but not of those of its accounts" : ""}.`
            : "Not required. Users may still add a second factor of their own accord."
        }
        actions={<RequirementSwitch type={type} company={company} />}
      />
      <RecentActivity about="company" id={id} />
      <Section
        title={isActive ? "Deactivate" : "Activate"}
        description={
          <>
            {isActive
              ? "Signs all its users out and holds its webhook events. Reviews still arrive. "
              : "Its users can sign in again, and held webhook events are delivered. "}
            <Deletion company={company} />
          </>
        }
        actions={<CompanySwitch type={type} company={company} />}
      />
    </Stack>
  );
}

/** Tells of the deletion of a company, or leads to its form. */
function Deletion({ company: { id, is_active: isActive } }: Pick<DetailsProps, "company">) {
  const deletion = useQuery({ ...deletionOfOptions(useApi(), id), enabled: !isActive }).data;
  if (deletion)
    return (
      <strong>
        Its deletion begins <Time at={deletion.due_at} mayBeAhead />.{" "}
        <TextLink href="/erasures?tab=companies">Show or cancel it</TextLink>
      </strong>
    );
  return (
    <>
      A deactivated company can be{" "}
      <TextLink href={`/erasures?tab=companies&company=${id}`}>deleted for good</TextLink>.
    </>
  );
}

function Colour({ color }: { readonly color: string }) {
  return (
    <Group gap="xs">
      <ColorSwatch color={color} size={16} aria-hidden />
      {color}
    </Group>
  );
}

function Users({ type, company: { id, name, ...company } }: Omit<DetailsProps, "facts">) {
  const stores = "stores" in company ? company.stores : [];
  const partner = useInactivePartner("partner_id" in company ? company.partner_id : null);
  const create = (
    <DialogButton label="New user" title={`New user of ${name}`}>
      {(close) => <NewUser company={{ id, name, type, stores }} onClose={close} />}
    </DialogButton>
  );
  return (
    <Stack>
      <Group justify="flex-end">{create}</Group>
      <TableList
        list={useList(usersOptions(useApi(), { company_id: id }))}
        noun={["user", "users"]}
        empty={
          <EmptyState icon="users" title="No users yet">
            Invite an owner first. The owner then invites the others.
          </EmptyState>
        }
        table={{
          caption: "Users, newest first",
          columns: (user) => ({
            Name: (
              <CellText title={<RowLink href={`/users/${user.id}`}>{user.name}</RowLink>}>
                {user.email}
              </CellText>
            ),
            Role: roleName(user.role),
            State: (
              <UserState user={user} isSuspended={!company.is_active || partner !== undefined} />
            ),
            Created: <Time at={user.created_at} />,
          }),
        }}
      />
    </Stack>
  );
}
