import { Component, type ReactNode } from "react";
import { useLocation } from "wouter";

import { reloadSignedIn } from "./session/identity.ts";
import { ErrorNotice } from "./ui/states.tsx";

interface PageBoundaryProps {
  readonly children: ReactNode;
}

/** Shows the error of a page that breaks; the navigation stays usable, and leads to pages that do not. */
export function PageBoundary({ children }: PageBoundaryProps) {
  const [location] = useLocation();
  return <Boundary location={location}>{children}</Boundary>;
}

interface BoundaryProps extends PageBoundaryProps {
  readonly location: string;
}

interface BoundaryState {
  /** Where the error belongs to. */
  readonly location: string;
  readonly broken?: { readonly error: unknown } | undefined;
}

class Boundary extends Component<BoundaryProps, BoundaryState> {
  override state: BoundaryState = { location: this.props.location };

  static getDerivedStateFromError(error: unknown) {
    return { broken: { error } };
  }

  static getDerivedStateFromProps({ location }: BoundaryProps, before: BoundaryState) {
    return location === before.location ? null : { location, broken: undefined };
  }

  override render() {
    const { broken } = this.state;
    if (broken === undefined) return this.props.children;
    return <ErrorNotice error={broken.error} retry={reloadSignedIn} />;
  }
}
