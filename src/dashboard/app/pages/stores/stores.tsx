import { useLocation } from "wouter";

import { useApi } from "../../session/session.tsx";
import { Highlighted } from "../../ui/badges.tsx";
import { DialogButton, type OpenedByLink } from "../../ui/dialog.tsx";
import { FilterBar, TextFilter, useFilters, useOpenedByLink } from "../../ui/filters.tsx";
import { idOf } from "../../ui/format.ts";
import { CellText, PageHeader, PageLink, RowLink } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { EmptyState } from "../../ui/states.tsx";
import { textQuery } from "../../ui/text-query.ts";
import { Time } from "../../ui/time.tsx";
import { CompanyName, CompanySelect } from "../companies/company-select.tsx";
import { storesOptions } from "./data.ts";
import { SitesState } from "./sites-state.tsx";
import { StoreForm } from "./store-form.tsx";

export function Page() {
  const { get, set, field, count, clear } = useFilters(["q", "account"]);
  const q = get("q");
  const accountId = idOf(get("account"));
  const filter = { ...textQuery(q), ...(accountId !== undefined && { account_id: accountId }) };
  return (
    <>
      <PageHeader
        title="Stores"
        description="The locations that an account's customers review. Connect each store to its review sites to collect their reviews."
        actions={<NewStore accountId={accountId} {...useOpenedByLink()} />}
      />
      <FilterBar
        count={count}
        inView={q === undefined ? 0 : 1}
        onClear={clear}
        search={<TextFilter label="Name" placeholder="Main Street" {...field("q")} />}
      >
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
            title={noStoreTitle(q, accountId)}
            action={<NewStore accountId={accountId} />}
          >
            Create a store, then connect it to its review sites.
          </EmptyState>
        }
        table={{
          caption: "Stores, newest first",
          columns: (one) => ({
            Name: (
              <CellText
                title={
                  <RowLink href={`/stores/${one.id}`}>
                    <Highlighted text={one.name} q={q} />
                  </RowLink>
                }
              >
                Store {one.id}
              </CellText>
            ),
            "Review sites": <SitesState sites={one.review_sites} />,
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
            "External ID": one.external_id ?? "None",
            Changed: <Time at={one.updated_at} />,
          }),
        }}
      />
    </>
  );
}

function noStoreTitle(q: string | undefined, accountId: number | undefined): string {
  if (q !== undefined) return "No store has this name";
  return accountId === undefined ? "No stores yet" : "This account has no store";
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
