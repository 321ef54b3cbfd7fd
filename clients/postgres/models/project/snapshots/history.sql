{% snapshot history %}
{{ config(target_schema='dbt', unique_key='name', strategy='check', check_cols=['clicks']) }}
SELECT * FROM {{ ref('sums') }}
{% endsnapshot %}
