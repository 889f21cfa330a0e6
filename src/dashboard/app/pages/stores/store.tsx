import { NativeSelect, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useLocation, useParams } from "wouter";

import { apiErrorOf } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { StateBadge } from "../../ui/badges.tsx";
import { CopyableId } from "../../ui/copy.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { ConfirmedAction, DialogButton } from "../../ui/dialog.tsx";
import { Form, useForm } from "../../ui/form.tsx";
import { idOf, sentence } from "../../ui/format.ts";
import { CellText, Dimmed, PageHeader, Section, TextLink } from "../../ui/layout.tsx";
import { EmptyState, NotFound, UnreadRecord } from "../../ui/states.tsx";
import { Time } from "../../ui/time.tsx";
import { CompanyName } from "../companies/company-select.tsx";
import {
  allProvidersOptions,
  type Store,
  storeOptions,
  type StoreSite,
  useSiteName,
  useStoreActions,
} from "./data.ts";
import { StoreForm } from "./store-form.tsx";

const BACK = { href: "/stores", title: "Stores" };

export function Page() {
  const { id: text = "" } = useParams();
  const id = idOf(text) ?? 0;
  const store = useQuery(storeOptions(useApi(), id));
  if (id === 0) return <NotFound back={BACK} />;
  if (store.data === undefined) return <UnreadRecord title="Store" back={BACK} query={store} />;
  return <Shown store={store.data} />;
}

interface StoreProps {
  readonly store: Store;
}

function Shown({ store }: StoreProps) {
  const { id, name, account_id: accountId, partner_id: partnerId, external_id: own } = store;
  return (
    <>
      <PageHeader
        title={name}
        back={BACK}
        description={
          <>
            Store {id} of{" "}
            <TextLink href={`/companies/${accountId}`}>
              <CompanyName id={accountId} />
            </TextLink>
            , an account of{" "}
            <TextLink href={`/companies/${partnerId}`}>
              <CompanyName id={partnerId} />
            </TextLink>
            {own !== null && `. External ID: ${own}`}
          </>
        }
        actions={
          <>
            <DialogButton label="Edit" title={`Edit ${name}`} button={{ variant: "default" }}>
              {(close) => <StoreForm store={store} onClose={close} />}
            </DialogButton>
            <DeleteStore store={store} />
          </>
        }
      />
      <Sites store={store} />
    </>
  );
}

function DeleteStore({ store: { id, name } }: StoreProps) {
  const { remove } = useStoreActions();
  const [, navigate] = useLocation();
  return (
    <ConfirmedAction
      label="Delete"
      button={{ variant: "subtle", color: "red", "aria-label": `Delete ${name}` }}
      title={`Delete ${name}?`}
      action="Delete store"
      danger
      onConfirm={async () => {
        await remove(id);
        navigate("/stores");
      }}
      done={`${name} deleted.`}
      refusalOf={(error) =>
        apiErrorOf(error)?.code === "in_use"
          ? "This store is still connected to a review site, or a location user sees it. Remove both first."
          : undefined
      }
    >
      A store that is connected to a review site, or that a location user sees, cannot be deleted.
      Remove its review sites first.
    </ConfirmedAction>
  );
}

function Sites({ store }: StoreProps) {
  const nameOf = useSiteName();
  const { review_sites: sites } = store;
  return (
    <Section
      title="Review sites"
      description="Reviews are read from each site, and responses are posted there. Each of the two can fail separately. The site's events name the connection by its ID."
      actions={
        <DialogButton label="Connect a review site">
          {(close) => <ConnectSite store={store} onClose={close} />}
        </DialogButton>
      }
    >
      {sites.length === 0 ? (
        <EmptyState icon="plug" title="No review site yet">
          Without a connection, no review of this store arrives.
        </EmptyState>
      ) : (
        <DataTable
          caption="Review sites of the store"
          rows={sites}
          rowKey={({ id }) => id}
          end="Actions"
          columns={(one) => ({
            "Review site": <CellText title={nameOf(one.provider)} />,
            "Reading reviews": <Axis axis={one.pull} />,
            "Posting responses": <Axis axis={one.post} />,
            "Last review": one.last_review_at ? <Time at={one.last_review_at} /> : "None recently",
            "State changed": <Time at={one.updated_at} />,
            "Connection ID": (
              <CopyableId
                id={String(one.id)}
                label={`Copy the connection's id of ${nameOf(one.provider)}`}
              />
            ),
            Actions: <Disconnect site={one} />,
          })}
        />
      )}
    </Section>
  );
}

function Axis({ axis: { connected, error_code: error } }: { readonly axis: StoreSite["pull"] }) {
  return (
    <>
      <StateBadge state={connected ? "connected" : "disconnected"} />
      {error !== null && <Dimmed>{sentence(error)}</Dimmed>}
    </>
  );
}

function Disconnect({ site }: { readonly site: StoreSite }) {
  const { disconnect } = useStoreActions();
  const { id } = site;
  const provider = useSiteName()(site.provider);
  return (
    <ConfirmedAction
      label="Remove"
      button={{ size: "xs", variant: "subtle", color: "red", "aria-label": `Remove ${provider}` }}
      title={`Remove ${provider} from this store?`}
      action="Remove"
      danger
      onConfirm={() => disconnect(id)}
      done={`${provider} removed from the store.`}
      refusalOf={(error) =>
        apiErrorOf(error)?.code === "in_use"
          ? `${provider} has already reported events for this store, so the connection stays.`
          : undefined
      }
    >
      Events with this connection's ID are refused from now on. A connection with which the site has
      reported an event cannot be removed.
    </ConfirmedAction>
  );
}

interface ConnectSiteProps extends StoreProps {
  readonly onClose: () => void;
}

function ConnectSite({ store, onClose }: ConnectSiteProps) {
  const { connect } = useStoreActions();
  const nameOf = useSiteName();
  const providers = useQuery(allProvidersOptions(useApi())).data ?? [];
  const free = providers.filter(
    ({ slug }) => !store.review_sites.some((one) => one.provider === slug),
  );
  const first = free[0]?.id ?? 0;
  const form = useForm({
    initial: { provider_id: 0 },
    send: ({ provider_id: id }) => connect(store.id, id === 0 ? first : id),
    done: ({ provider }) => `${store.name} connected to ${nameOf(provider)}.`,
    onDone: onClose,
  });
  const chosen = form.draft.provider_id === 0 ? first : form.draft.provider_id;
  if (providers.length > 0 && free.length === 0)
    return (
      <Text size="sm">
        {store.name} is connected to every review site. Further ones are created under{" "}
        <TextLink href="/providers">Providers</TextLink>.
      </Text>
    );
  return (
    <Form form={form} action="Connect" isReady={chosen !== 0} onCancel={onClose}>
      <NativeSelect
        label="Review site"
        description="Afterwards, put the ID of the connection into the puller."
        data-autofocus
        value={String(chosen)}
        error={form.errorOf("provider_id")}
        data={free.map(({ id, name }) => ({ value: String(id), label: name }))}
        onChange={(event) => form.edit({ provider_id: Number(event.currentTarget.value) })}
      />
    </Form>
  );
}
