import { AppShell, Burger, Group, NavLink } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type { ReactNode } from "react";
import { Link, useLocation } from "wouter";

import { Icon } from "../ui/icon.tsx";
import type { Area } from "./area.ts";
import { Brand } from "./brand.tsx";
import { UserMenu } from "./user-menu.tsx";

interface ShellProps {
  readonly areas: readonly Area[];
  readonly search: ReactNode;
  readonly children: ReactNode;
}

/** Surrounds every page of somebody who is signed in. */
export function Shell({ areas, search, children }: ShellProps) {
  const [opened, { toggle, close }] = useDisclosure();
  return (
    <>
      <a className="skip-link" href="#content">
        Skip to the content
      </a>
      <AppShell
        header={{ height: 56 }}
        navbar={{ width: 220, breakpoint: "sm", collapsed: { mobile: !opened } }}
        padding="md"
      >
        <AppShell.Header>
          <Group h="100%" px="md" justify="space-between" wrap="nowrap">
            <Group wrap="nowrap" gap="sm" className="shrinks">
              <Burger
                opened={opened}
                onClick={toggle}
                hiddenFrom="sm"
                size="sm"
                aria-label="Navigation"
                aria-expanded={opened}
              />
              <Brand />
            </Group>
            <Group wrap="nowrap" gap="sm">
              {search}
              <UserMenu />
            </Group>
          </Group>
        </AppShell.Header>
        <AppShell.Navbar p="xs" aria-label="Main" className={opened ? "" : "closed-on-phones"}>
          <Navigation areas={areas} onChoose={close} />
        </AppShell.Navbar>
        <AppShell.Main id="content" tabIndex={-1}>
          <div className="page">{children}</div>
        </AppShell.Main>
      </AppShell>
    </>
  );
}

interface NavigationProps {
  readonly areas: readonly Area[];
  readonly onChoose: () => void;
}

function Navigation({ areas, onChoose }: NavigationProps) {
  const [location] = useLocation();
  const own = areas.find(({ isPersonal }) => isPersonal);
  return (
    <>
      {areas.map(({ path, title, icon }) => (
        <NavLink
          key={path}
          component={Link}
          href={path}
          className={path === own?.path ? "begins-own" : ""}
          label={title}
          leftSection={<Icon name={icon} />}
          active={location === path || location.startsWith(`${path}/`)}
          aria-current={location === path ? "page" : undefined}
          onClick={onChoose}
        />
      ))}
      <NavLink
        mt="auto"
        href="/docs/getting-started"
        target="_blank"
        label="Documentation"
        leftSection={<Icon name="book" />}
      />
    </>
  );
}
