import { useLocation } from "wouter";

import { useApi } from "../../session/session.tsx";
import { DialogButton, type OpenedByLink } from "../../ui/dialog.tsx";
import { FilterBar, useFilters, useOpenedByLink } from "../../ui/filters.tsx";
import { idOf } from "../../ui/format.ts";
import { CellText, PageHeader, PageLink, RowLink } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { EmptyState } from "../../ui/states.tsx";
import { Time } from "../../ui/time.tsx";
import { CompanyName, CompanySelect } from "../companies/company-select.tsx";
import { storesOptions } from "./data.ts";
import { SitesState } from "./sites-state.tsx";
import { StoreForm } from "./store-form.tsx";

export function Page() {
  const { get, set, count, clear } = useFilters(["account"]);
  const accountId = idOf(get("account"));
  const filter = accountId === undefined ? {} : { account_id: accountId };
  return (
    <>
      <PageHeader
        title="Stores"
        description="The locations that an account's customers review. Connect each store to its review sites to collect their reviews."
        actions={<NewStore accountId={accountId} {...useOpenedByLink()} />}
      />
      <FilterBar count={count} onClear={clear}>
        <CompanySelect
          label="Account"
          types={["account"]}
          placeholder="Every account"
          value={accountId}
          onChange={(account) => set({ account: account && String(account.id) })}
        />
      </FilterBar>
      <TableList
        list={useList(storesOptions(useApi(), filter))}
        noun={["store", "stores"]}
        empty={
          <EmptyState
            icon="store"
            title={count > 0 ? "This account has no store" : "No stores yet"}
            action={<NewStore accountId={accountId} />}
          >
            Create a store, then connect it to its review sites.
          </EmptyState>
        }
        table={{
          caption: "Stores, newest first",
          columns: (one) => ({
            Name: (
              <CellText title={<RowLink href={`/stores/${one.id}`}>{one.name}</RowLink>}>
                Store {one.id}
              </CellText>
            ),
            Account: (
              <PageLink href={`/companies/${one.account_id}`} className="on-top">
                <CompanyName id={one.account_id} />
              </PageLink>
            ),
            Partner: (
              <PageLink href={`/companies/${one.partner_id}`} className="on-top">
                <CompanyName id={one.partner_id} />
              </PageLink>
            ),
            // The API lists the connections of one account in a single request, but not those of all accounts.
            ...(accountId !== undefined && {
              "Review sites": <SitesState accountId={accountId} storeId={one.id} />,
            }),
            "External ID": one.external_id ?? "None",
            Changed: <Time at={one.updated_at} />,
          }),
        }}
      />
    </>
  );
}

/** Button that opens the form of a new store. Afterwards the store's page opens, where it is connected to sites. */
function NewStore({
  accountId,
  ...opened
}: OpenedByLink & { readonly accountId: number | undefined }) {
  const [, navigate] = useLocation();
  return (
    <DialogButton label="New store" {...opened}>
      {(close) => (
        <StoreForm
          accountId={accountId}
          onClose={close}
          onCreated={({ id }) => navigate(`/stores/${id}`)}
        />
      )}
    </DialogButton>
  );
}
