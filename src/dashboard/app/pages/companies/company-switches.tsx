import { useQuery } from "@tanstack/react-query";

import { useApi } from "../../session/session.tsx";
import { ActiveSwitch, ConfirmedAction } from "../../ui/dialog.tsx";
import { StateBadge } from "../../ui/badges.tsx";
import { Dimmed } from "../../ui/layout.tsx";
import { type CompanyType, inactivePartnersOptions, useCompanyActions } from "./data.ts";

interface Company {
  readonly id: number;
  readonly name: string;
  readonly is_active: boolean;
  readonly require_second_factor: boolean;
  /** Partner of an account. */
  readonly partner_id?: number | null;
}

/** Returns the partner with this id if it is inactive. Nobody of an inactive partner or of its accounts can sign in. */
export function useInactivePartner(id: number | null) {
  const { data } = useQuery({ ...inactivePartnersOptions(useApi()), enabled: id !== null });
  return data?.find((one) => one.id === id);
}

/** Shows whether a company is active, and whether its users need a second factor. */
export function CompanyState({ company }: { readonly company: Company }) {
  const partner = useInactivePartner(company.partner_id ?? null);
  return (
    <>
      <StateBadge state={company.is_active && partner === undefined ? "active" : "inactive"} />
      {partner !== undefined && <Dimmed>because its partner {partner.name} is inactive</Dimmed>}
      {company.require_second_factor && <Dimmed>Two-step required</Dimmed>}
    </>
  );
}

interface CompanySwitchProps {
  readonly type: CompanyType;
  readonly company: Company;
}

/** Button that requires a second factor of the company's users, or ends this requirement. */
export function RequirementSwitch({ type, company }: CompanySwitchProps) {
  const { setFactorRequired } = useCompanyActions();
  const { id, name, require_second_factor: isRequired } = company;
  const label = isRequired ? "Stop requiring two-step" : "Require two-step";
  return (
    <ConfirmedAction
      label={label}
      button={{ size: "xs", "aria-label": `${label}: ${name}` }}
      title={
        isRequired
          ? `Stop requiring two-step verification at ${name}?`
          : `Require two-step verification at ${name}?`
      }
      action={label}
      onConfirm={() => setFactorRequired(type, id, !isRequired)}
      done={`Two-step verification ${isRequired ? "no longer required" : "required"} at ${name}.`}
    >
      {isRequired
        ? "Users without a second factor sign in with their password only. Existing factors stay."
        : "Users without a second factor set one up at their next sign-in. Current sessions stay active."}
      {type === "partner" && " This does not apply to the users of its accounts."}
    </ConfirmedAction>
  );
}

/** Button that deactivates or activates a company. */
export function CompanySwitch({ type, company }: CompanySwitchProps) {
  const { setActive } = useCompanyActions();
  const { id, name, is_active: isActive } = company;
  return (
    <ActiveSwitch
      isActive={isActive}
      name={name}
      onSwitch={(next) => setActive(type, id, next)}
      done={isActive ? `${name} deactivated. Its users are signed out.` : `${name} activated.`}
    >
      {isActive ? DEACTIVATION_WORDS[type] : ACTIVATION_WORDS[type]}
    </ActiveSwitch>
  );
}

const DEACTIVATION_WORDS = {
  partner:
    "All users of the partner and of its accounts are signed out immediately and cannot sign in. Their tokens and API keys are revoked permanently, including those of clients that act for them. No webhook events are sent; they are held until the partner is active again. Reviews still arrive.",
  account:
    "All users of the account are signed out immediately and cannot sign in. Their tokens and API keys are revoked permanently. No webhook events about the account are sent; they are held until the account is active again. Reviews still arrive.",
} as const;

const ACTIVATION_WORDS = {
  partner:
    "Its users and those of its active accounts can sign in again. Previous tokens and API keys stay revoked.",
  account: "Its users can sign in again. Previous tokens and API keys stay revoked.",
} as const;
