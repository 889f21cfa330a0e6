import { useLocation } from "wouter";

import { roleName } from "../../session/roles.ts";
import { useApi } from "../../session/session.tsx";
import { BreakableText, StateBadge } from "../../ui/badges.tsx";
import { DialogButton, type OpenedByLink } from "../../ui/dialog.tsx";
import { FilterBar, useFilters, useOpenedByLink } from "../../ui/filters.tsx";
import { idOf } from "../../ui/format.ts";
import { CellText, PageHeader, RowLink } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { EmptyState } from "../../ui/states.tsx";
import { Time } from "../../ui/time.tsx";
import { CompanyName, CompanySelect } from "../companies/company-select.tsx";
import { ConnectionForm } from "./connection-form.tsx";
import { connectionState, ssoConnectionsOptions } from "./data.ts";

export function Page() {
  const { get, set, count, clear } = useFilters(["company"]);
  const companyId = idOf(get("company"));
  const filter = companyId === undefined ? {} : { company_id: companyId };
  return (
    <>
      <PageHeader
        title="Single sign-on"
        description="Users of a company sign in at its own identity provider (OpenID Connect)."
        actions={<NewConnection {...useOpenedByLink()} />}
      />
      <FilterBar count={count} onClear={clear}>
        <CompanySelect
          label="Company"
          types={["partner", "account"]}
          placeholder="Every company"
          value={companyId}
          onChange={(company) => set({ company: company && String(company.id) })}
        />
      </FilterBar>
      <TableList
        list={useList(ssoConnectionsOptions(useApi(), filter))}
        noun={["connection", "connections"]}
        empty={
          <EmptyState
            icon="link"
            title={count > 0 ? "This company has no SSO connection" : "No SSO connection yet"}
            action={<NewConnection />}
          >
            Ask the company for the issuer, the client ID and the client secret of an application at
            its identity provider. The next page then has the redirect URI for the company.
          </EmptyState>
        }
        table={{
          caption: "SSO connections, newest first",
          columns: (one) => ({
            Company: (
              <CellText
                title={
                  <RowLink href={`/sso/${one.id}`}>
                    <CompanyName id={one.company_id} />
                  </RowLink>
                }
              >
                <BreakableText text={one.issuer} />
              </CellText>
            ),
            State: <StateBadge state={connectionState(one)} />,
            Domains: one.domain_proofs.map(({ domain, proved_at: provedAt }) => (
              <CellText key={domain} title={<BreakableText text={domain} />}>
                {provedAt === null ? "Not verified by DNS" : "Verified by DNS"}
              </CellText>
            )),
            Passwords: one.password_login ? "Allowed" : "Not allowed",
            "New users": one.new_users === null ? "Not created" : roleName(one.new_users.role),
            Changed: <Time at={one.updated_at} />,
          }),
        }}
      />
    </>
  );
}

/** Button that opens the form of a new SSO connection. Afterwards its page opens, with the next steps. */
function NewConnection(opened: OpenedByLink) {
  const [, navigate] = useLocation();
  return (
    <DialogButton label="New connection" {...opened}>
      {(close) => <ConnectionForm onClose={close} onCreated={({ id }) => navigate(`/sso/${id}`)} />}
    </DialogButton>
  );
}
