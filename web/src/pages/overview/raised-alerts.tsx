import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { queries } from '../../api/queries.ts'
import { formatAmount } from '../../format/number.ts'
import { StateIcon } from '../../ui/state.tsx'
import classes from './raised-alerts.module.css'

/** One line that leads to the alerts, if there are any. */
export function RaisedAlerts() {
  const { data: alerts = [] } = useQuery(queries.alerts())
  const raised = alerts.filter(({ acknowledged }) => !acknowledged)
  const worst = raised.find(({ severity }) => severity === 'critical') ?? raised[0]
  if (!worst) return null
  return (
    <Link to="/alerts" className={classes.line}>
      <StateIcon state={worst.severity === 'critical' ? 'exhausted' : 'parked'} size={14} />
      <span className="line">
        <strong>{formatAmount(raised.length, 'alert')}:</strong> <bdi>{worst.summary}</bdi>
      </span>
    </Link>
  )
}
