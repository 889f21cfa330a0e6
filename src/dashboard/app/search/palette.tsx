import { Anchor, Combobox, Text, TextInput, useCombobox } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useEffectEvent, useState } from "react";
import { useLocation } from "wouter";

import { wholeTeamOptions } from "../pages/partner/data.ts";
import { catalogOptions } from "../pages/webhooks/data/reads.ts";
import { useApi, useSession } from "../session/session.tsx";
import type { Area } from "../shell/page.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Icon, type IconName } from "../ui/icon.tsx";
import { guidesLike, type Hit, isGuide, pagesLike, topicsLike } from "./hit.ts";
import css from "./palette.module.css";
import { catalogLike, guidesOptions, searchOptions, teamLike } from "./reads.ts";

const TYPING_MS = 200;
const ICONS: Readonly<Record<Hit["group"], IconName>> = {
  Pages: "chevronRight",
  "Settings and actions": "edit",
  Events: "send",
  Reviews: "star",
  Subscriptions: "webhook",
  Companies: "building",
  Accounts: "building",
  Team: "user",
  Stores: "store",
  Users: "user",
  Plans: "catalog",
  Providers: "plug",
  Services: "server",
  "Single sign-on": "link",
  "OAuth clients": "key",
  "Event catalog": "catalog",
  Documentation: "book",
};

interface PaletteProps {
  readonly areas: readonly Area[];
  readonly onClose: () => void;
}

/** Search dialog for pages, records and guides, usable by keyboard alone. A pasted id opens its page at once. */
export function Palette({ areas, onClose }: PaletteProps) {
  const [text, setText] = useState("");
  const [pasted, setPasted] = useState<string>();
  const typed = text.trim();
  const { hits, isLooking } = useHits(areas, typed);
  const go = useGo(onClose);
  const exact = hits.filter(({ isExact }) => isExact);
  const target = pasted === typed && !isLooking && exact.length === 1 ? exact[0] : undefined;
  const open = useEffectEvent(go);
  useEffect(() => {
    if (target !== undefined) open(target);
  }, [target]);
  const combobox = useCombobox({ opened: true });
  const found = hits.map(({ href }) => href).join(" ");
  // Selects the first result, so that Enter opens it without a preceding arrow key.
  useEffect(() => {
    if (found !== "") combobox.selectFirstOption();
    // oxlint-disable-next-line react/exhaustive-deps -- the combobox is a new object in every render.
  }, [found]);
  return (
    <Dialog opened onClose={onClose} title="Search" size="lg" yOffset="10vh">
      <Combobox
        store={combobox}
        withinPortal={false}
        onOptionSubmit={(index) => {
          const hit = hits[Number(index)];
          if (hit !== undefined) go(hit);
        }}
      >
        <Combobox.EventsTarget withExpandedAttribute>
          <TextInput
            data-autofocus
            label="What are you looking for?"
            placeholder={
              areas.some(({ path }) => path === "/services")
                ? "Name, email, ID, URL, domain or page"
                : "Name, page, setting, or ID of an event or review"
            }
            leftSection={<Icon name="search" size={16} />}
            spellCheck={false}
            value={text}
            onPaste={(event) => setPasted(event.clipboardData.getData("text").trim())}
            onChange={(event) => setText(event.currentTarget.value)}
            // Closes the dialog on Escape. Mantine's combobox would otherwise consume the key to close its own
            // dropdown.
            onKeyDown={(event) => event.key === "Escape" && onClose()}
          />
        </Combobox.EventsTarget>
        <Text size="xs" c="dimmed" my="xs" aria-live="polite">
          {typed === "" ? (
            <span className="unseen-on-phones">
              Use the arrow keys to select, Enter to open and Escape to close.
            </span>
          ) : (
            resultStatus(hits.length, isLooking)
          )}
        </Text>
        {typed !== "" && !isLooking && hits.length === 0 && (
          <Text size="sm">
            Check the spelling, try fewer words, or{" "}
            <Anchor href="/docs" target="_blank" inherit underline="always">
              read the documentation
            </Anchor>
            .
          </Text>
        )}
        <Combobox.Options mah="55vh" style={{ overflowY: "auto" }} aria-label="Found">
          {groupsOf(hits).map(([group, own]) => (
            <Combobox.Group key={group} label={group}>
              {own.map(({ hit, index }) => (
                <Combobox.Option
                  key={`${hit.title} ${hit.href}`}
                  value={String(index)}
                  className={css.hit}
                >
                  <Icon name={iconOf(hit, areas)} size={16} />
                  <div className="shrinks">
                    <Text size="sm" truncate>
                      {hit.title}
                    </Text>
                    {hit.hint !== "" && <span className="finding">{hit.hint}</span>}
                  </div>
                </Combobox.Option>
              ))}
            </Combobox.Group>
          ))}
        </Combobox.Options>
      </Combobox>
    </Dialog>
  );
}

/** Returns the icon that a page has in the navigation menu, or that of the group of another result. */
function iconOf({ group, href }: Hit, areas: readonly Area[]): IconName {
  const area = group === "Pages" ? areas.find(({ path }) => path === href) : undefined;
  return area?.icon ?? ICONS[group];
}

function groupsOf(hits: readonly Hit[]) {
  const numbered = hits.map((hit, index) => ({ hit, index }));
  return [...Map.groupBy(numbered, ({ hit }) => hit.group)];
}

function resultStatus(count: number, isLooking: boolean): string {
  if (isLooking) return "Searching…";
  return count === 0 ? "No results." : `${count} found.`;
}

/** Returns a function that opens a search result. Guides open in a new tab, as they do from the navigation menu. */
function useGo(onClose: () => void) {
  const [, navigate] = useLocation();
  return (hit: Hit) => {
    onClose();
    if (isGuide(hit)) window.open(hit.href, "_blank", "noopener");
    else navigate(hit.href);
  };
}

function useHits(areas: readonly Area[], typed: string) {
  const api = useApi();
  const { role } = useSession().user;
  const [query] = useDebouncedValue(typed, TYPING_MS);
  const guides = useQuery(guidesOptions);
  const found = useQuery(searchOptions(api, areas, query));
  const catalog = useQuery({
    ...catalogOptions({ api, partnerId: undefined }),
    enabled: areas.some(({ path }) => path === "/events"),
  });
  const team = useQuery({
    ...wholeTeamOptions(api),
    enabled: typed !== "" && areas.some(({ path }) => path === "/team"),
  });
  const pages = pagesLike(areas, typed);
  if (typed === "") return { hits: pages, isLooking: false };
  const records = query === typed && !found.isPlaceholderData ? (found.data ?? []) : [];
  const events = catalogLike(catalog.data?.events ?? [], typed);
  const topics = topicsLike(areas, role, typed);
  const hits = [
    ...records,
    ...teamLike(team.data ?? [], typed),
    ...pages,
    ...topics,
    ...events,
    ...guidesLike(guides.data ?? [], typed),
  ];
  return { hits, isLooking: query !== typed || found.isFetching };
}
